"""Presets of sweeps: one YAML file each; its first comment line says what it is for."""

from surefoot.settings.shipped import Shipped

sweep_presets = Shipped(__name__)
