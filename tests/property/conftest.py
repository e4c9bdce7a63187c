from hypothesis import settings

# The same examples every time: a law that breaks should break for whoever changed the code, not for whoever runs next.
settings.register_profile("surefoot", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("surefoot")
