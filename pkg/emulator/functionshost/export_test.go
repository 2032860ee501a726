package functionshost

// Waiting is how many wait on a clock of NewClock, so that a test moves it after they do.
func (c *Clock) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}
