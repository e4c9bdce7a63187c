from hypothesis import HealthCheck, settings

# The same examples every time: a law that breaks should break for whoever changed the code, not for whoever runs next.
# And no timing: the machine may be busy.
settings.register_profile(
    "surefoot",
    deadline=None,
    derandomize=True,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("surefoot")
