"""Tools of the agents that tests serve."""


def refund(order: int) -> str:
    """Give the money back."""
    return f"order {order} was refunded"
