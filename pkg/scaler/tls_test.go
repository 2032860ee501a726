package scaler_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/scaler"
	pb "github.com/feedscale/feedscale/pkg/scaler/externalscaler"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testworld.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	testworld.Must(t, err)
	certificate, err := x509.ParseCertificate(der)
	testworld.Must(t, err)
	return authority{certificate, key}
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// sign writes a certificate of a name, and its key, to files.
func (a authority) sign(t *testing.T, name, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testworld.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	testworld.Must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	testworld.Must(t, err)
	testworld.Must(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	testworld.Must(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

// files are those of a server with a certificate of an authority.
func files(t *testing.T, a authority) scaler.TLS {
	t.Helper()
	folder := t.TempDir()
	f := scaler.TLS{CertFile: filepath.Join(folder, "tls.crt"), KeyFile: filepath.Join(folder, "tls.key"), ClientCAFile: filepath.Join(folder, "ca.crt")}
	a.sign(t, "server", f.CertFile, f.KeyFile)
	testworld.Must(t, os.WriteFile(f.ClientCAFile, a.pem(), 0o600))
	return f
}

// ask asks a server under TLS once, with certificates of a client's own.
func ask(t *testing.T, address string, trusted authority, own ...tls.Certificate) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(trusted.certificate)
	c := dial(t, address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, Certificates: own, MinVersion: tls.VersionTLS12})))
	_, err := pb.NewExternalScalerClient(c).IsActive(t.Context(), of("orders"))
	return err
}

func TestWhoHasNoCertificateIsRefusedWhereOneIsAskedFor(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	certificates := files(t, ours)
	source := newDecided(map[string]any{"orders": 1})
	mutual := serve(t, scaler.Options{Source: source, TLS: certificates})
	certificates.ClientCAFile = ""
	open := serve(t, scaler.Options{Source: source, TLS: certificates})

	pair := func(a authority) tls.Certificate {
		folder := t.TempDir()
		a.sign(t, "keda", filepath.Join(folder, "c"), filepath.Join(folder, "k"))
		own, err := tls.LoadX509KeyPair(filepath.Join(folder, "c"), filepath.Join(folder, "k"))
		testworld.Must(t, err)
		return own
	}
	for _, c := range []struct {
		rule string
		err  error
		says string // "" = no error
	}{
		{"one of that CA", ask(t, mutual.address, ours, pair(ours)), ""},
		// In TLS 1.3 the client writes before the server refuses its certificate: it meets the alert, or a closed connection.
		{"none", ask(t, mutual.address, ours), "code = Unavailable"},
		{"one of another CA", ask(t, mutual.address, ours, pair(theirs)), "code = Unavailable"},
		{"none where none is asked for", ask(t, open.address, ours), ""},
		{"a server of another CA", ask(t, open.address, theirs), "certificate signed by unknown authority"},
	} {
		if (c.err == nil) != (c.says == "") || c.err != nil && !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v", c.rule, c.err)
		}
	}
}

func TestARenewedCertificateCountsWithoutARestart(t *testing.T) {
	t.Parallel()
	before, after := newAuthority(t), newAuthority(t)
	certificates := files(t, before)
	certificates.ClientCAFile = ""
	s := serve(t, scaler.Options{Source: newDecided(map[string]any{"orders": 1}), TLS: certificates})
	testworld.Must(t, ask(t, s.address, before))
	after.sign(t, "server", certificates.CertFile, certificates.KeyFile)
	testworld.Must(t, ask(t, s.address, after))
}

func TestWhatIsWrongWithTheCertificatesIsSaidAtTheStart(t *testing.T) {
	t.Parallel()
	good := files(t, newAuthority(t))
	missing, swapped, none := good, good, good
	missing.CertFile += ".missing"
	swapped.CertFile, swapped.KeyFile = good.KeyFile, good.CertFile
	none.ClientCAFile = good.KeyFile
	for says, certificates := range map[string]scaler.TLS{"no such file": missing, "cannot be used": swapped, "has no certificate in PEM": none} {
		if _, err := scaler.New(scaler.Options{TLS: certificates}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want one that says %s", err, says)
		}
	}
}
