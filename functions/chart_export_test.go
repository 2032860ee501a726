package main

import "time"

// Plot is what history and simulate draw with.
func Plot(values []float64, width, height int, from, to time.Time) string {
	return plot{title: "lag", values: values, width: width, height: height, from: from, to: to}.String()
}
