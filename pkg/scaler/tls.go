package scaler

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/feedscale/feedscale/pkg/bounded"
)

// TLS are files in PEM. They are read again for each connection, so that a renewed certificate counts without
// a restart.
type TLS struct {
	CertFile     string // the server's certificate, with the intermediate ones
	KeyFile      string
	ClientCAFile string // the CA of the certificates that clients must show; "" = they show none
}

// config returns the configuration, after a check that the files are there and fit.
func (t TLS) config() (*tls.Config, error) {
	if _, err := t.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.load() },
	}, nil
}

func (t TLS) load() (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("the certificate %s with the key %s cannot be used: %w", t.CertFile, t.KeyFile, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{certificate}}
	if t.ClientCAFile == "" {
		return config, nil
	}
	text, err := bounded.ReadFile(t.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("the CA of clients cannot be read: %w", err)
	}
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("the CA of clients, %s, has no certificate in PEM", t.ClientCAFile)
	}
	return config, nil
}
