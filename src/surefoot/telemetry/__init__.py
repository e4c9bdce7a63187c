"""What a run says about itself: metric names and the sinks that take them. Never imports torch."""
