package servicebusfake_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestOnlyTheRightKeyOpensAQueue(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(connection string) string
		want   bool
	}{
		"the key as given":   {func(c string) string { return c }, true},
		"another key":        {func(c string) string { return strings.Replace(c, servicebusfake.DefaultKey, "d3Jvbmc=", 1) }, false},
		"another key's name": {func(c string) string { return strings.Replace(c, servicebusfake.DefaultKeyName, "Guest", 1) }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, orders(servicebusfake.QueueSpec{}))
			client, err := azservicebus.NewClientFromConnectionString(test.change(s.ConnectionString()), nil)
			testworld.Must(t, err)
			defer func() { _ = client.Close(context.Background()) }()
			err = newSender(t, client, "orders").SendMessage(deadline(t), text("a"), nil)
			if test.want {
				testworld.Must(t, err)
				return
			}
			var refused *azservicebus.Error
			if !errors.As(err, &refused) || refused.Code != azservicebus.CodeUnauthorizedAccess {
				t.Errorf("got %v, want unauthorized", err)
			}
			if strings.Contains(err.Error(), "d3Jvbmc=") || strings.Contains(err.Error(), servicebusfake.DefaultKey) {
				t.Errorf("the key stands in %v", err)
			}
		})
	}
}

type token string

func (t token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(t), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func TestAnIdentityIsCheckedOverTLS(t *testing.T) {
	t.Parallel()
	certificate, roots := certificate(t)
	o := orders(servicebusfake.QueueSpec{})
	o.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	o.Token = func(jwt string) error {
		if jwt != "good" {
			return errors.New("not the good one")
		}
		return nil
	}
	s := start(t, o)
	tests := map[string]bool{"good": true, "bad": false}
	for jwt, want := range tests {
		t.Run(jwt, func(t *testing.T) {
			t.Parallel()
			client, err := azservicebus.NewClient("shop.servicebus.windows.net", token(jwt), &azservicebus.ClientOptions{
				CustomEndpoint: s.Addr().String(), TLSConfig: &tls.Config{RootCAs: roots},
			})
			testworld.Must(t, err)
			defer func() { _ = client.Close(context.Background()) }()
			err = newSender(t, client, "orders").SendMessage(deadline(t), text("a"), nil)
			if (err == nil) != want {
				t.Errorf("got %v, want success %v", err, want)
			}
		})
	}
}

// certificate makes a certificate for a namespace, and the roots that trust it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testworld.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"shop.servicebus.windows.net"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	testworld.Must(t, err)
	parsed, err := x509.ParseCertificate(der)
	testworld.Must(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
