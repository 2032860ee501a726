package functionshost

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// defaultFunctionTimeout is that of every plan but Consumption.
const defaultFunctionTimeout = 30 * time.Minute

// hostJSON is the part of host.json that concerns a custom handler.
type hostJSON struct {
	Version         string          `json:"version"`
	FunctionTimeout string          `json:"functionTimeout"`
	Retry           json.RawMessage `json:"retry"`
	CustomHandler   *struct {
		Description *struct {
			DefaultExecutablePath         string   `json:"defaultExecutablePath"`
			DefaultWorkerPath             string   `json:"defaultWorkerPath"`
			WorkerDirectory               string   `json:"workerDirectory"`
			WorkingDirectory              string   `json:"workingDirectory"`
			Arguments                     []string `json:"arguments"`
			WorkerArguments               []string `json:"workerArguments"`
			UseStdErrorStreamForErrorOnly *bool    `json:"useStdErrorStreamForErrorsOnly"`
		} `json:"description"`
		EnableForwardingHTTPRequest bool            `json:"enableForwardingHttpRequest"`
		EnableProxyingHTTPRequest   bool            `json:"enableProxyingHttpRequest"`
		InitializationTimeout       string          `json:"initializationTimeout"`
		Port                        int             `json:"port"`
		HTTP                        json.RawMessage `json:"http"`
	} `json:"customHandler"`
	ExtensionBundle *struct {
		ID      string `json:"id"`
		Version string `json:"version"`
	} `json:"extensionBundle"`
	Extensions struct {
		HTTP struct {
			RoutePrefix *string `json:"routePrefix"`
		} `json:"http"`
		ServiceBus struct {
			MaxConcurrentCalls *int `json:"maxConcurrentCalls"`
		} `json:"serviceBus"`
	} `json:"extensions"`
}

// app is a function app as the host understands it.
type app struct {
	root            string
	settings        map[string]string // all of the host's environment
	functions       []*function
	inError         map[string]error // functions that do not run, and why
	routePrefix     string
	bundle          bool // an extension bundle is configured
	forward         bool // HTTP-only functions get the original request
	functionTimeout time.Duration

	maxConcurrentCalls int // of a Service Bus trigger

	executable       string
	workingDirectory string
	arguments        []string // with their placeholders
	workerPath       string
	workerArguments  []string
	stderrIsError    bool
	startTimeout     time.Duration
	port             int // 0 = any free one
}

// errNotImitated is the error for a feature of the host that this stand-in does not have. Such an
// app does not start.
var errNotImitated = errors.New("not imitated by this stand-in")

// readApp reads a staged function app.
func readApp(root string, settings map[string]string, now time.Time) (*app, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("reading the function app %s: %w", root, err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "host.json"))
	if err != nil {
		return nil, fmt.Errorf("reading the function app: %w", err)
	}
	var host hostJSON
	if err := json.Unmarshal(raw, &host); err != nil {
		return nil, fmt.Errorf("reading host.json: %w", err)
	}
	a := &app{root: root, settings: settings, inError: map[string]error{}}
	if err := a.configure(host); err != nil {
		return nil, fmt.Errorf("host.json: %w", err)
	}
	return a, readFunctions(a, now)
}

func (a *app) configure(host hostJSON) error {
	switch {
	case host.Version != "2.0":
		return fmt.Errorf("version is %q, the host reads \"2.0\"", host.Version)
	case host.CustomHandler == nil || host.CustomHandler.Description == nil:
		return errors.New("customHandler.description is missing")
	case len(host.CustomHandler.HTTP) > 0:
		return errors.New("customHandler.http excludes function.json files")
	case len(host.Retry) > 0:
		return fmt.Errorf("retry policies are %w", errNotImitated)
	case host.ExtensionBundle != nil && (host.ExtensionBundle.ID == "" || host.ExtensionBundle.Version == ""):
		return errors.New("extensionBundle needs an id and a version")
	}
	a.bundle = host.ExtensionBundle != nil
	a.forward = host.CustomHandler.EnableForwardingHTTPRequest || host.CustomHandler.EnableProxyingHTTPRequest
	a.port = host.CustomHandler.Port
	a.routePrefix = "api"
	if prefix := host.Extensions.HTTP.RoutePrefix; prefix != nil {
		a.routePrefix = strings.Trim(*prefix, "/")
	}
	// Microsoft.Azure.WebJobs.Extensions.ServiceBus/src/Config/ServiceBusOptions.cs of
	// Azure/azure-sdk-for-net.
	a.maxConcurrentCalls = 16 * runtime.NumCPU()
	if n := host.Extensions.ServiceBus.MaxConcurrentCalls; n != nil {
		a.maxConcurrentCalls = *n
	}
	if a.maxConcurrentCalls < 1 {
		return fmt.Errorf("extensions.serviceBus.maxConcurrentCalls is %d, at least 1 is allowed", a.maxConcurrentCalls)
	}
	if err := a.configureTimeouts(host); err != nil {
		return err
	}
	return a.configureProcess(host)
}

func (a *app) configureTimeouts(host hostJSON) (err error) {
	a.functionTimeout = defaultFunctionTimeout
	switch text := host.FunctionTimeout; text {
	case "":
	case "-1":
		a.functionTimeout = 0 // unbounded
	default:
		if a.functionTimeout, err = parseTimeSpan(text); err != nil {
			return fmt.Errorf("functionTimeout: %w", err)
		}
		if a.functionTimeout < time.Second {
			return fmt.Errorf("functionTimeout is %s, at least 00:00:01 is allowed", text)
		}
	}
	a.startTimeout = 30 * time.Second
	if text := host.CustomHandler.InitializationTimeout; text != "" {
		if a.startTimeout, err = parseTimeSpan(text); err != nil {
			return fmt.Errorf("customHandler.initializationTimeout: %w", err)
		}
	}
	return nil
}

func (a *app) configureProcess(host hostJSON) error {
	description := host.CustomHandler.Description
	a.arguments, a.workerArguments = description.Arguments, description.WorkerArguments
	a.workerPath = expand(description.DefaultWorkerPath, a.settings)
	a.stderrIsError = description.UseStdErrorStreamForErrorOnly == nil || *description.UseStdErrorStreamForErrorOnly
	a.workingDirectory = a.inRoot(description.WorkingDirectory)

	executable := expand(description.DefaultExecutablePath, a.settings)
	if executable == "" {
		return errors.New("customHandler.description.defaultExecutablePath is empty")
	}
	// Against the worker directory, which is the script root unless set, never against the working
	// directory; and only if the file is there.
	if !filepath.IsAbs(executable) {
		if path := filepath.Join(a.inRoot(description.WorkerDirectory), executable); isFile(path) {
			executable = path
		}
	}
	path, err := exec.LookPath(executable)
	if err != nil {
		return fmt.Errorf("customHandler.description.defaultExecutablePath: %q is neither an executable file in %s nor a command: %w", executable, a.root, err)
	}
	a.executable = path
	return nil
}

// inRoot completes a path of host.json.
func (a *app) inRoot(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.root, path)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
