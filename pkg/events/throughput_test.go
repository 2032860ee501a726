package events_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/events"
)

func TestAnEventMaySayWhatThroughputIsNeeded(t *testing.T) {
	t.Parallel()
	e := ordersEvent()
	e.Throughput = []events.Throughput{
		{Account: "shop.documents.azure.com", Container: "shop/views", Mode: "recommend", Provisioned: new(500), Desired: new(1500), Needed: new(1500)},
		{Account: "shop.documents.azure.com", Container: "shop", Mode: "apply", AtLimit: true},
	}
	body := encode(t, e)
	if err := validator(t)(body); err != nil {
		t.Error(err)
	}
	got, err := events.Decode(body)
	if err != nil || !reflect.DeepEqual(got.Throughput, e.Throughput) {
		t.Errorf("got %+v, %v", got.Throughput, err)
	}
	for rule, replace := range map[string][2]string{
		"a mode that there is not": {`"mode":"recommend"`, `"mode":"maybe"`},
		"a number that is none":    {`"desiredRUPerSecond":1500`, `"desiredRUPerSecond":"1500"`},
	} {
		if err := validator(t)([]byte(strings.Replace(string(body), replace[0], replace[1], 1))); err == nil {
			t.Errorf("%s: the schema says nothing", rule)
		}
	}
	if without := string(encode(t, ordersEvent())); strings.Contains(without, "throughput") {
		t.Errorf("without any: %s", without)
	}
}
