package emulator

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificateLife is how long a new certificate is valid.
const certificateLife = 365 * 24 * time.Hour

// LoadCertificate returns a TLS configuration for the stand-ins, and the PEM file for clients to
// trust: ca.pem in the folder. The certificate in a folder is its own authority, for this machine's
// own names. One is made where there is none or it has expired, so that clients must be told to
// trust it once.
func LoadCertificate(folder string, now time.Time) (c *tls.Config, caFile string, err error) {
	if folder, err = filepath.Abs(folder); err != nil {
		return nil, "", err
	}
	caFile, keyFile := filepath.Join(folder, "ca.pem"), filepath.Join(folder, "key.pem")
	pair, err := tls.LoadX509KeyPair(caFile, keyFile)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now.After(pair.Leaf.NotAfter) {
		if err = writeCertificate(caFile, keyFile, now); err == nil {
			pair, err = tls.LoadX509KeyPair(caFile, keyFile)
		}
	}
	if err != nil {
		return nil, "", fmt.Errorf("the certificate in %s cannot be used, remove it or name another folder: %w", folder, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}, caFile, nil
}

func writeCertificate(caFile, keyFile string, now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "feedscale stand-ins"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(certificateLife),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(caFile), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		return err
	}
	return os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600)
}
