"""Folds the events of a chat's runs into parts."""
