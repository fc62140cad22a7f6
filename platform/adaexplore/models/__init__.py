"""How models are asked: profiles and endpoints behind one call."""
