package functionshost

// Waiting returns how many goroutines wait on a clock of NewClock, so that a test can move it after
// they do.
func (c *Clock) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}
