// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/temporal"
	"github.com/consort-go/consort/internal/gateway"
	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
)

// flags are the flags that the engine adds to serve and worker.
type flags struct {
	namespace         string
	queue             string
	tls               bool
	cert, key, ca     string // file names
	deployment, build string
}

// temporalEngine returns the engine in the form that package command uses.
func temporalEngine() gateway.Engine {
	var f flags
	return gateway.Engine{Name: "temporal", Flags: f.add, Open: f.open, Work: f.work}
}

func (f *flags) add(set *pflag.FlagSet) {
	set.StringVar(&f.namespace, "temporal-namespace", "default", "the namespace of the Temporal server")
	set.StringVar(&f.queue, "temporal-queue", temporal.DefaultQueue, "the task queue of the workers")
	set.BoolVar(&f.tls, "temporal-tls", false, "use TLS; also implied by an API key in TEMPORAL_API_KEY")
	set.StringVar(&f.cert, "temporal-tls-cert", "", "the `FILE` of the client certificate for the Temporal server")
	set.StringVar(&f.key, "temporal-tls-key", "", "the `FILE` of that certificate's key")
	set.StringVar(&f.ca, "temporal-tls-ca", "", "the `FILE` of the CA certificates that sign the Temporal server's certificate")
	set.StringVar(&f.deployment, "temporal-deployment", "", "the deployment of the worker, together with --temporal-build")
	set.StringVar(&f.build, "temporal-build", "", "the build of the worker within its deployment")
}

// dial connects to the server at an address.
func (f *flags) dial(ctx context.Context, address string, logger *zap.Logger) (client.Client, error) {
	options := client.Options{HostPort: address, Namespace: f.namespace, Logger: temporal.NewLogger(logger)}
	if key := os.Getenv("TEMPORAL_API_KEY"); key != "" {
		options.Credentials = client.NewAPIKeyStaticCredentials(key)
	}
	var err error
	if options.ConnectionOptions.TLS, err = f.config(options.Credentials != nil); err != nil {
		return nil, err
	}
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("the Temporal server at %s, namespace %s: %w", address, f.namespace, err)
	}
	return c, nil
}

// config returns the TLS configuration for the server, or nil for plain text.
func (f *flags) config(key bool) (*tls.Config, error) {
	if !f.tls && !key && f.cert == "" && f.ca == "" {
		return nil, nil
	}
	config := &tls.Config{}
	if f.cert != "" || f.key != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("--temporal-tls-cert and --temporal-tls-key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, fmt.Errorf("--temporal-tls-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--temporal-tls-ca: %s has no certificate in PEM", f.ca)
		}
	}
	return config, nil
}

// open returns the engine for a serving process.
func (f *flags) open(ctx context.Context, address string, parts gateway.Parts) (engine.Engine, error) {
	c, err := f.dial(ctx, address, parts.Logger)
	if err != nil {
		return nil, err
	}
	options := &temporal.Options{Queue: f.queue, Open: parts.Open}
	if parts.Notifier != nil {
		options.Stream = temporal.NewStream(parts.Notifier)
	}
	e, err := temporal.NewEngine(c, parts.Store, options)
	if err != nil {
		c.Close()
		return nil, err
	}
	return &dialed{Engine: e, client: c}, nil
}

// dialed is an engine that owns its connection.
type dialed struct {
	engine.Engine
	client client.Client
}

// Close closes the engine, and then the connection.
func (d *dialed) Close(ctx context.Context) error {
	defer d.client.Close()
	return d.Engine.Close(ctx)
}

// work runs conversations until ctx ends.
func (f *flags) work(ctx context.Context, address string, parts gateway.Parts, ready func()) error {
	c, err := f.dial(ctx, address, parts.Logger)
	if err != nil {
		return err
	}
	defer c.Close()
	options := &temporal.WorkerOptions{
		Queue: f.queue, Values: parts.Values, Logger: parts.Logger, Deployment: f.deployment, Build: f.build,
	}
	if parts.Notifier != nil {
		options.Stream = temporal.NewStream(parts.Notifier)
	}
	w, err := temporal.NewWorker(c, parts.Store, parts.Open, options)
	if err != nil {
		return err
	}
	ready()
	select {
	case <-ctx.Done():
	case <-w.Done():
	}
	return w.Close()
}
