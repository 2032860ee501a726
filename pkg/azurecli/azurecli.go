// Package azurecli writes the commands of the Azure CLI that fix what a service refuses, as its reference
// has them (https://learn.microsoft.com/cli/azure/reference-index). A refusal has its command; who knows
// more fills in the words in capitals. It runs nothing. Start with [Command].
//
// The package is internal to the program: its API may change in any release.
package azurecli

import "strings"

// What a command does not know.
const (
	Group         = "RESOURCE_GROUP"
	Principal     = "OBJECT_ID"      // of the identity
	PrincipalType = "PRINCIPAL_TYPE" // of the identity: User or ServicePrincipal
	Address       = "PUBLIC_IP"      // of this machine, as the service sees it
)

// Command writes a command, with arguments quoted where a shell would read more into them.
func Command(name string, arguments ...string) string {
	line := "az " + name
	for _, a := range arguments {
		line += " " + quoted(a)
	}
	return line
}

// InGroup writes a command for something in a resource group.
func InGroup(name string, arguments ...string) string {
	return Command(name+" --resource-group "+Group, arguments...)
}

func quoted(word string) string {
	special := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,=@", r))
	}
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Service is a kind of service, by what its commands have in common.
type Service struct {
	placeholder string // in place of a resource whose host does not tell
	zone        string // first label of its domain, as in shop.documents.azure.com
	provider    string // of its resource ids
}

// The services.
var (
	Cosmos     = Service{"ACCOUNT", "documents", "Microsoft.DocumentDB/databaseAccounts"}
	Table      = Service{"STORAGE_ACCOUNT", "table", "Microsoft.Storage/storageAccounts"}
	ServiceBus = Service{"NAMESPACE", "servicebus", "Microsoft.ServiceBus/namespaces"}
)

// Hosts reports whether a host is one of the service in Azure, in whichever cloud.
func (s Service) Hosts(host string) bool {
	labels := strings.Split(host, ".")
	return len(labels) > 3 && labels[1] == s.zone
}

// Resource returns the name of the resource that a host belongs to.
func (s Service) Resource(host string) string {
	if !s.Hosts(host) {
		return s.placeholder
	}
	name, _, _ := strings.Cut(host, ".")
	return name
}

// ID returns the resource id that a host belongs to.
func (s Service) ID(host string) string {
	return "/subscriptions/SUBSCRIPTION/resourceGroups/" + Group + "/providers/" + s.provider + "/" + s.Resource(host)
}

// Assign writes the command that gives the identity a role at a scope.
func Assign(role, scope string) string {
	return Command("role assignment create", "--assignee-object-id", Principal, "--assignee-principal-type", PrincipalType, "--role", role, "--scope", scope)
}
