package config

import (
	"fmt"
	"strings"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// azureRegions are the names of Azure's regions without their numbers
// (https://learn.microsoft.com/azure/reliability/regions-list).
const azureRegions = "australiacentral australiaeast australiasoutheast austriaeast belgiumcentral brazilsouth " +
	"brazilsoutheast canadacentral canadaeast centralindia centralus chilecentral chinaeast chinanorth denmarkeast " +
	"eastasia eastus francecentral francesouth germanynorth germanywestcentral indonesiacentral israelcentral " +
	"italynorth japaneast japanwest jioindiacentral jioindiawest koreacentral koreasouth malaysiawest mexicocentral " +
	"newzealandnorth northcentralus northeurope norwayeast norwaywest polandcentral qatarcentral southafricanorth " +
	"southafricawest southcentralus southeastasia southindia spaincentral swedencentral swedensouth " +
	"switzerlandnorth switzerlandwest uaecentral uaenorth uksouth ukwest usdodcentral usdodeast usgovarizona " +
	"usgovtexas usgovvirginia westcentralus westeurope westindia westus"

// parseRegion refuses a name that is one letter away from a region of Azure. It accepts any other name,
// since Azure opens regions: the letters of a new one differ in more than one place, or not at all.
func parseRegion(text string) (string, error) {
	if wrong := wrongValue(text); wrong != "" {
		return "", fmt.Errorf("%s", wrong)
	}
	name := strings.ToLower(strings.ReplaceAll(text, " ", ""))
	letters := strings.TrimRight(name, "0123456789")
	near := ""
	for _, region := range strings.Fields(azureRegions) {
		switch changefeed.NameDistance(letters, region) {
		case 0:
			return text, nil
		case 1:
			near = region
		}
	}
	if near != "" {
		return "", fmt.Errorf("%s is no Azure region; did you mean %s?", yamltree.Quote(text), near+name[len(letters):])
	}
	return text, nil
}
