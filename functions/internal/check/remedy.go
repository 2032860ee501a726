package check

import (
	"cmp"
	"errors"
	"net"
	"strings"

	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/refusal"
)

// refused says what is wrong, and how to fix it if a service refused. who asked is named in commands.
func refused(err error, who principal) finding {
	r, ok := errors.AsType[*refusal.Error](err)
	if !ok {
		return bad("", "%v", err)
	}
	fix := strings.ReplaceAll(r.Command, azurecli.Principal, cmp.Or(who.object, azurecli.Principal))
	if fix != "" {
		fix += "   # "
	}
	return bad(fix+r.Remedy, "%s", r.Detail())
}

// name is the host, with the port if it is not the usual one.
func (e serviceEndpoint) name() string {
	usual := usualPort[e.tls]
	if e.url == nil {
		usual = amqpsPort
	}
	if e.port == usual {
		return e.host
	}
	return net.JoinHostPort(e.host, e.port)
}

// identityFix fixes an identity that gives no token, by where this process runs.
func identityFix(getenv func(string) string, i config.Identity) string {
	app, containerApp := getenv("WEBSITE_SITE_NAME"), getenv("CONTAINER_APP_NAME")
	switch {
	case !i.Secret.IsZero():
		return azurecli.Command("ad app credential reset", "--id", i.ClientID, "--append")
	case i.Credential == config.CredentialWorkloadIdentity:
		return azurecli.InGroup("identity federated-credential create", "--name", "feedscale", "--identity-name", "IDENTITY",
			"--issuer", "OIDC_ISSUER", "--subject", "system:serviceaccount:NAMESPACE:SERVICE_ACCOUNT", "--audiences", "api://AzureADTokenExchange")
	case containerApp != "" && i.ClientID != "":
		return azurecli.InGroup("containerapp identity assign", "--name", containerApp, "--user-assigned", "IDENTITY_RESOURCE_ID")
	case containerApp != "":
		return azurecli.InGroup("containerapp identity assign", "--name", containerApp, "--system-assigned")
	case app == "" && i.Credential == config.CredentialDefault && i.TenantID != "":
		return azurecli.Command("login", "--tenant", i.TenantID)
	case app == "" && i.Credential == config.CredentialDefault:
		return azurecli.Command("login")
	}
	assign := []string{"--name", cmp.Or(app, "FUNCTION_APP")}
	if i.ClientID != "" {
		assign = append(assign, "--identities", "IDENTITY_RESOURCE_ID")
	}
	return azurecli.InGroup("functionapp identity assign", assign...)
}
