"""Proof that the fast path equals the readable one: `verify` runs both and compares them component by component."""

from surefoot.verification.check import verify
from surefoot.verification.report import Component, Report

__all__ = ["Component", "Report", "verify"]
