// Package azurecli writes commands of the Azure CLI that fix what a service refuses
// (https://learn.microsoft.com/cli/azure/reference-index). Words in capitals are placeholders, which the
// caller or the user fills in. It runs nothing. Start with [Command].
//
// The package is internal to the program: its API may change in any release.
package azurecli

import (
	"regexp"
	"strings"
)

// The placeholders.
const (
	Group     = "RESOURCE_GROUP"
	Principal = "OBJECT_ID" // of the identity
	Address   = "PUBLIC_IP" // of this machine, as the service sees it
)

// Command writes a command, with arguments quoted for a shell where needed.
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

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:,=@-]+$`)

func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Service is a kind of service, with what its commands have in common.
type Service struct {
	placeholder string // for a resource that the host does not name
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
	return Command("role assignment create", "--assignee-object-id", Principal, "--role", role, "--scope", scope)
}
