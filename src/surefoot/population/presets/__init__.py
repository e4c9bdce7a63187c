"""Presets of populations: one YAML file each; its first comment line says what it is for."""

from surefoot.settings.shipped import Shipped

population_presets = Shipped(__name__)
