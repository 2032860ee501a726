// Empty: the compiler takes a function without a body, as go:linkname needs one, only where there is assembly.
