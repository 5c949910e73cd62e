"""What an expression is: types, nodes, ops, and how to walk, rewrite and evaluate them."""
