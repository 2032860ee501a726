package cosmosfake

import (
	"net/http"
	"strings"
)

// Kind is what a request asks for.
type Kind string

// The kinds of requests.
const (
	ReadAccount Kind = "read account"
	// ReadAddresses is how direct mode begins; it is refused.
	ReadAddresses Kind = "read addresses"

	CreateDatabase Kind = "create database"
	ReadDatabase   Kind = "read database"
	DeleteDatabase Kind = "delete database"
	ListDatabases  Kind = "list databases" // also by query

	CreateContainer  Kind = "create container"
	ReadContainer    Kind = "read container"
	ReplaceContainer Kind = "replace container"
	DeleteContainer  Kind = "delete container"
	ListContainers   Kind = "list containers" // also by query

	ListOffers   Kind = "list offers" // also by query
	ReadOffer    Kind = "read offer"
	ReplaceOffer Kind = "replace offer"

	ReadRanges Kind = "read partition key ranges"

	CreateDocument  Kind = "create document"
	UpsertDocument  Kind = "upsert document"
	ReadDocument    Kind = "read document"
	ReplaceDocument Kind = "replace document"
	PatchDocument   Kind = "patch document"
	DeleteDocument  Kind = "delete document"
	ExecuteBatch    Kind = "execute batch"

	ListDocuments  Kind = "list documents"
	ReadChangeFeed Kind = "read change feed"
	QueryDocuments Kind = "query documents"
	PlanQuery      Kind = "plan query"

	// ListScripts is the empty list of stored procedures, triggers, functions and conflicts.
	ListScripts Kind = "list scripts"
	// Unknown is everything else; it is answered with 400.
	Unknown Kind = "unknown"
)

// Kinds are all kinds of requests.
func Kinds() []Kind {
	return []Kind{
		ReadAccount, ReadAddresses,
		CreateDatabase, ReadDatabase, DeleteDatabase, ListDatabases,
		CreateContainer, ReadContainer, ReplaceContainer, DeleteContainer, ListContainers,
		ListOffers, ReadOffer, ReplaceOffer,
		ReadRanges,
		CreateDocument, UpsertDocument, ReadDocument, ReplaceDocument, PatchDocument, DeleteDocument, ExecuteBatch,
		ListDocuments, ReadChangeFeed, QueryDocuments, PlanQuery,
		ListScripts, Unknown,
	}
}

// writes reports whether a kind changes something, hence is served by the write region only.
func (k Kind) writes() bool {
	switch k {
	case CreateDatabase, DeleteDatabase, CreateContainer, ReplaceContainer, DeleteContainer, ReplaceOffer,
		CreateDocument, UpsertDocument, ReplaceDocument, PatchDocument, DeleteDocument, ExecuteBatch:
		return true
	}
	return false
}

// forKeysOnly reports whether a kind is closed to identities: their permissions cover data and the
// reading of metadata.
func (k Kind) forKeysOnly() bool {
	switch k {
	case CreateDatabase, DeleteDatabase, CreateContainer, ReplaceContainer, DeleteContainer, ListOffers, ReadOffer, ReplaceOffer:
		return true
	}
	return false
}

// kindOf tells a request's kind from its method, the resource types in its link, and its headers.
func kindOf(method string, types []string, feed bool, h http.Header) Kind {
	link := strings.Join(types, "/")
	if feed {
		return feedKind(method, link, h)
	}
	switch method + " " + link {
	case "GET ":
		return ReadAccount
	case "GET dbs":
		return ReadDatabase
	case "DELETE dbs":
		return DeleteDatabase
	case "GET dbs/colls":
		return ReadContainer
	case "PUT dbs/colls":
		return ReplaceContainer
	case "DELETE dbs/colls":
		return DeleteContainer
	case "GET dbs/colls/docs":
		return ReadDocument
	case "PUT dbs/colls/docs":
		return ReplaceDocument
	case "PATCH dbs/colls/docs":
		return PatchDocument
	case "DELETE dbs/colls/docs":
		return DeleteDocument
	case "GET offers":
		return ReadOffer
	case "PUT offers":
		return ReplaceOffer
	}
	return Unknown
}

func feedKind(method, link string, h http.Header) Kind {
	query := isQuery(h)
	switch method + " " + link {
	case "GET addresses":
		return ReadAddresses
	case "GET dbs":
		return ListDatabases
	case "POST dbs":
		return either(query, ListDatabases, CreateDatabase)
	case "GET dbs/colls":
		return ListContainers
	case "POST dbs/colls":
		return either(query, ListContainers, CreateContainer)
	case "GET offers", "POST offers":
		return ListOffers
	case "GET dbs/colls/pkranges":
		return ReadRanges
	case "GET dbs/colls/docs":
		return either(h.Get("A-IM") != "", ReadChangeFeed, ListDocuments)
	case "POST dbs/colls/conflicts":
		return either(query, ListScripts, Unknown)
	case "GET dbs/colls/sprocs", "GET dbs/colls/triggers", "GET dbs/colls/udfs", "GET dbs/colls/conflicts":
		return ListScripts
	case "POST dbs/colls/docs":
		switch {
		case isTrue(h, "x-ms-cosmos-is-query-plan-request"):
			return PlanQuery
		case isTrue(h, "x-ms-cosmos-is-batch-request"):
			return ExecuteBatch
		case query:
			return QueryDocuments
		case isTrue(h, "x-ms-documentdb-is-upsert"):
			return UpsertDocument
		}
		return CreateDocument
	}
	return Unknown
}

func either(condition bool, yes, no Kind) Kind {
	if condition {
		return yes
	}
	return no
}

// isQuery follows the content type and both headers by which clients mark a query.
func isQuery(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "application/query+json") ||
		isTrue(h, "x-ms-documentdb-isquery") || isTrue(h, "x-ms-documentdb-query")
}

func isTrue(h http.Header, name string) bool { return strings.EqualFold(h.Get(name), "true") }
