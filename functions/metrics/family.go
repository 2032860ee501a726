package metrics

import (
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// labels are those of one series, by name. Series share them, since there may be hundreds of thousands.
type labels []*dto.LabelPair

// labelled makes labels of names and values.
func labelled(namesAndValues ...string) labels {
	made := make(labels, 0, len(namesAndValues)/2)
	for i := 0; i < len(namesAndValues); i += 2 {
		made = append(made, &dto.LabelPair{Name: &namesAndValues[i], Value: &namesAndValues[i+1]})
	}
	return made
}

// row is something that has series with some labels.
type row[T any] struct {
	labels
	of T
}

// kind is one kind of series, of which each row has one if its value is known. It is a counter if its name
// ends in _total, else a gauge.
type kind[T any] struct {
	name, help string
	value      func(of T) (value float64, known bool)
}

// single is one kind of series of rows that are numbers.
func single(name, help string) []kind[float64] {
	return []kind[float64]{{name, help, func(v float64) (float64, bool) { return v, true }}}
}

// each shows the series of some kinds, one kind after the other: together they take much memory. A kind
// without series is left out.
func each[T any](show func(*dto.MetricFamily), kinds []kind[T], rows []row[T]) {
	for _, k := range kinds {
		f := &dto.MetricFamily{Name: &k.name, Help: &k.help, Type: dto.MetricType_GAUGE.Enum()}
		if strings.HasSuffix(k.name, "_total") {
			f.Type = dto.MetricType_COUNTER.Enum()
		}
		for _, r := range rows {
			v, known := k.value(r.of)
			switch {
			case !known:
			case *f.Type == dto.MetricType_COUNTER:
				f.Metric = append(f.Metric, &dto.Metric{Label: r.labels, Counter: &dto.Counter{Value: &v}})
			default:
				f.Metric = append(f.Metric, &dto.Metric{Label: r.labels, Gauge: &dto.Gauge{Value: &v}})
			}
		}
		if len(f.Metric) > 0 {
			show(f)
		}
	}
}
