"""The reports' pictures: the only place here that draws."""
