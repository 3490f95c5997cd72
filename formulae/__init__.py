"""Pure formulae of compute, money, energy and carbon; no Django, no input or output, no clock."""
