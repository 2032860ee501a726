package containerapp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/actions/containerapp"
	"github.com/feedscale/feedscale/pkg/events"
)

func TestTheTargetLabelsNameTheApp(t *testing.T) {
	t.Parallel()
	parts := func(subscription, group, name string) map[string]string {
		return map[string]string{"subscriptionId": subscription, "resourceGroup": group, "containerApp": name}
	}
	id := func(text string) map[string]string { return map[string]string{"containerAppId": text} }
	for _, c := range []struct {
		rule   string
		labels map[string]string
		target string // "" = none
		says   string
	}{
		{"by its resource id", id(ordersID), "container app orders in resource group shop", ""},
		{"a resource id is read in any case", id(strings.ToUpper(ordersID)), "container app ORDERS in resource group SHOP", ""},
		{"by its three names", parts(subscription, "shop", "orders"), "container app orders in resource group shop", ""},
		{"a resource group may have parentheses", parts(subscription, "shop.(eu)-1_a", "orders"), "container app orders in resource group shop.(eu)-1_a", ""},
		{"other labels are somebody else's", map[string]string{"containerAppId": ordersID, "deployment": "x", "namespace": "?"}, "container app orders in resource group shop", ""},
		{"the resource id wins", map[string]string{"containerAppId": ordersID, "containerApp": "another"}, "container app orders in resource group shop", ""},
		{"no label at all", nil, "", "target label containerAppId is missing: give it the resource id of the app, or give subscriptionId, resourceGroup and containerApp"},
		{"no label of an app", map[string]string{"deployment": "orders"}, "", "target label containerAppId is missing"},
		{"no subscription", map[string]string{"resourceGroup": "shop", "containerApp": "orders"}, "", `target labels subscriptionId, resourceGroup and containerApp make "/subscriptions//resourceGroups/shop/providers/Microsoft.App/containerApps/orders"; allowed is /subscriptions/GUID/`},
		{"no resource group", map[string]string{"subscriptionId": subscription, "containerApp": "orders"}, "", `/resourceGroups//providers/`},
		{"no name", map[string]string{"subscriptionId": subscription, "resourceGroup": "shop"}, "", `/containerApps/"; allowed is`},
		{"a subscription by its name", parts("shop", "shop", "orders"), "", `make "/subscriptions/shop/resourceGroups/`},
		{"a resource group that is a path", parts(subscription, "shop/../other", "orders"), "", `make "/subscriptions/`},
		{"a resource group that ends with a dot", parts(subscription, "shop.", "orders"), "", `make "/subscriptions/`},
		{"a name that is a path", parts(subscription, "shop", "orders/stop"), "", `make "/subscriptions/`},
		{"a name that asks for something", parts(subscription, "shop", "orders?x=1"), "", `make "/subscriptions/`},
		{"an empty resource id", id(""), "", `target label containerAppId is ""; allowed is /subscriptions/`},
		{"what is no resource id", id("orders"), "", `target label containerAppId is "orders"; allowed is /subscriptions/`},
		{"another resource", id("/subscriptions/" + subscription + "/resourceGroups/shop/providers/Microsoft.Web/sites/orders"), "", "allowed is /subscriptions/"},
		{"a part of an app", id(ordersID + "/revisions/orders--1"), "", "allowed is /subscriptions/"},
		{"an app of no resource group", id("/subscriptions/" + subscription + "/providers/Microsoft.App/containerApps/orders"), "", "allowed is /subscriptions/"},
		{"a resource id whose subscription is none", id("/subscriptions/x/resourceGroups/shop/providers/Microsoft.App/containerApps/orders"), "", `target label containerAppId is "/subscriptions/x/`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			a := newAction(t, identity{}, containerapp.Options{})
			e := events.ScaleEvent{Data: events.Data{DesiredReplicas: 1, Target: c.labels}}
			target, err := a.Target(e)
			if c.target != "" {
				if err != nil || target != c.target {
					t.Errorf("got %q, %v", target, err)
				}
				return
			}
			if !errors.Is(err, events.ErrDeadLetter) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q, %v", target, err)
			}
			if _, acted := a.Act(t.Context(), e); acted == nil || acted.Error() != err.Error() {
				t.Errorf("acted upon with %v", acted)
			}
		})
	}
}
