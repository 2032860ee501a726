package main

import (
	"math/rand/v2"

	"github.com/feedscale/feedscale/pkg/simulate"
)

// workdayHours is an hourly profile like those that online shops publish: almost nothing before
// dawn, a rise until noon, a dip after lunch, the peak in the evening. The values are relative and
// begin at midnight.
var workdayHours = [24]float64{
	0.42, 0.25, 0.17, 0.13, 0.12, 0.16, 0.33, 0.62, 0.93, 1.18, 1.34, 1.45,
	1.52, 1.38, 1.29, 1.27, 1.31, 1.42, 1.58, 1.74, 1.83, 1.62, 1.19, 0.75,
}

// officeHours is the profile of a company's systems on a working day: two peaks around lunch, and
// batches at night.
var officeHours = [24]float64{
	0.15, 0.60, 0.72, 0.14, 0.10, 0.11, 0.25, 0.80, 1.85, 2.55, 2.70, 2.45,
	1.75, 2.05, 2.60, 2.48, 2.10, 1.32, 0.68, 0.45, 0.34, 0.28, 0.22, 0.18,
}

// weekdays are the relative loads of the days, Monday first.
var weekdays = [7]float64{1.16, 1.10, 1.06, 1.08, 1.00, 0.38, 0.30}

// hourly returns a profile whose rate changes evenly between its hours, with noise of up to a tenth
// every five minutes. About every four hours a job of ten minutes adds half as much again.
func hourly(hours *[24]float64, r *rand.Rand) func(second int) float64 {
	mean := 0.0
	for _, h := range hours {
		mean += h / 24
	}
	noise, job := 1.0, 0
	return func(second int) float64 {
		if second%300 == 0 {
			noise = 0.9 + 0.2*r.Float64()
			if job--; r.IntN(48) == 0 {
				job = 2
			}
		}
		// An hour's value applies to its middle.
		at := float64(second%86400)/3600 + 23.5
		hour := int(at)
		part := at - float64(hour)
		rate := (hours[hour%24]*(1-part) + hours[(hour+1)%24]*part) / mean
		if job > 0 {
			return rate * noise * 1.5
		}
		return rate * noise
	}
}

// workday is a day with the profile of workdayHours.
func workday(l Load, _ int, r *rand.Rand) simulate.Shape {
	of := hourly(&workdayHours, r)
	return simulate.Shape{Rate: func(second int) float64 { return l.Rate * of(second) }}
}

// weekly is a week of such days, from Monday.
func weekly(l Load, _ int, r *rand.Rand) simulate.Shape {
	of, mean := hourly(&officeHours, r), 0.0
	for _, day := range weekdays {
		mean += day / 7
	}
	return simulate.Shape{Rate: func(second int) float64 { return l.Rate * of(second) * weekdays[second/86400%7] / mean }}
}
