"""Explain the difference between two sides: same work or not, where the difference goes, what the findings say of it."""
