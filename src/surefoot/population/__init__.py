"""Population based training (Jaderberg et al. 2017): runs side by side; the worst continue from the best."""
