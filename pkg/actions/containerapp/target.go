package containerapp

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"

	"github.com/feedscale/feedscale/pkg/events"
)

// The target labels that name a Container App: its resource id, or the other three together. The
// resource id wins.
const (
	labelID            = "containerAppId"
	labelSubscription  = "subscriptionId"
	labelResourceGroup = "resourceGroup"
	labelName          = "containerApp"
)

// app names a Container App.
type app struct{ subscription, resourceGroup, name string }

func (a app) String() string {
	return fmt.Sprintf("container app %s in resource group %s", a.name, a.resourceGroup)
}

// path returns the app's resource id.
func (a app) path() string {
	return fmt.Sprintf("/subscriptions/%s/resourceGroups/%s/providers/Microsoft.App/containerApps/%s",
		a.subscription, url.PathEscape(a.resourceGroup), a.name)
}

// The names that Azure allows
// (https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules).
var (
	subscriptionName  = regexp.MustCompile(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	resourceGroupName = regexp.MustCompile(`^[\pL\pN._()-]{0,89}[\pL\pN_()-]$`)
	appName           = regexp.MustCompile(`^(?i)[a-z][a-z0-9-]{0,30}[a-z0-9]$`)
)

// targetOf reads the labels of a processor's target. It ignores labels that it does not know.
func targetOf(labels map[string]string) (app, error) {
	a := app{labels[labelSubscription], labels[labelResourceGroup], labels[labelName]}
	if id, ok := labels[labelID]; ok {
		return fromID(id)
	}
	if a == (app{}) {
		return app{}, fmt.Errorf("target label %s is missing: give it the resource id of the app, or give %s, %s and %s: %w",
			labelID, labelSubscription, labelResourceGroup, labelName, events.ErrDeadLetter)
	}
	return a, a.check("target label "+labelSubscription, "target label "+labelResourceGroup, "target label "+labelName)
}

func fromID(text string) (app, error) {
	const allowed = "allowed is /subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.App/containerApps/NAME"
	id, err := arm.ParseResourceID(text)
	if err != nil || !strings.EqualFold(id.ResourceType.String(), "Microsoft.App/containerApps") || id.ResourceGroupName == "" {
		return app{}, fmt.Errorf("target label %s is %q; %s: %w", labelID, text, allowed, events.ErrDeadLetter)
	}
	a := app{id.SubscriptionID, id.ResourceGroupName, id.Name}
	return a, a.check("the subscription in target label "+labelID, "the resource group in target label "+labelID, "the name in target label "+labelID)
}

// check validates each name against what Azure allows, so that none can change the path of the
// request.
func (a app) check(subscription, resourceGroup, name string) error {
	for _, part := range []struct {
		what, value, allowed string
		form                 *regexp.Regexp
	}{
		{subscription, a.subscription, "a GUID", subscriptionName},
		{resourceGroup, a.resourceGroup, "1 to 90 letters, digits, '.', '_', '-' and parentheses, without a '.' at the end", resourceGroupName},
		{name, a.name, "2 to 32 letters, digits and '-', a letter first and no '-' last", appName},
	} {
		if !part.form.MatchString(part.value) {
			return fmt.Errorf("%s is %q; allowed is %s: %w", part.what, part.value, part.allowed, events.ErrDeadLetter)
		}
	}
	return nil
}
