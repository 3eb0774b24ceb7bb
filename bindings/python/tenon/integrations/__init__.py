"""Tenon inside other people's programs: `tenon.integrations.torch`, `tenon.integrations.transformers`."""
