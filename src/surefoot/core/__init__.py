"""What everything else stands on: records, specs, config, counter-based randomness, registry, errors."""
