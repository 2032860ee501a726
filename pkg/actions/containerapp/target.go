package containerapp

import (
	"fmt"
	"regexp"

	"github.com/feedscale/feedscale/pkg/events"
)

// app names a Container App.
type app struct{ id, resourceGroup, name string }

func (a app) String() string {
	return fmt.Sprintf("container app %s in resource group %s", a.name, a.resourceGroup)
}

// resourceID has the names that Azure allows
// (https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules), so that none can
// change the path of a request.
var resourceID = regexp.MustCompile(`(?i)^/subscriptions/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}` +
	`/resourceGroups/([\pL\pN._()-]{0,89}[\pL\pN_()-])` +
	`/providers/Microsoft\.App/containerApps/([a-z][a-z0-9-]{0,30}[a-z0-9])$`)

// targetOf reads the labels of a processor's target: containerAppId, the resource id, which wins, or
// subscriptionId, resourceGroup and containerApp together. It ignores labels that it does not know.
func targetOf(labels map[string]string) (app, error) {
	from, id := "target label containerAppId is", labels["containerAppId"]
	if _, ok := labels["containerAppId"]; !ok {
		subscription, group, name := labels["subscriptionId"], labels["resourceGroup"], labels["containerApp"]
		if subscription+group+name == "" {
			return app{}, fmt.Errorf("target label containerAppId is missing: give it the resource id of the app, or give subscriptionId, resourceGroup and containerApp: %w", events.ErrDeadLetter)
		}
		from = "target labels subscriptionId, resourceGroup and containerApp make"
		id = "/subscriptions/" + subscription + "/resourceGroups/" + group + "/providers/Microsoft.App/containerApps/" + name
	}
	parts := resourceID.FindStringSubmatch(id)
	if parts == nil {
		return app{}, fmt.Errorf("%s %q; allowed is /subscriptions/GUID/resourceGroups/GROUP/providers/Microsoft.App/containerApps/NAME: %w", from, id, events.ErrDeadLetter)
	}
	return app{id, parts[1], parts[2]}, nil
}
