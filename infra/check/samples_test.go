package check_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func read(t *testing.T, elements ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, elements...)...))
	testworld.Must(t, err)
	return string(content)
}

// defaultOf returns the default of a template's parameter, as written, without quotes.
func defaultOf(t *testing.T, template, parameter string) string {
	t.Helper()
	match := regexp.MustCompile(`(?m)^param ` + parameter + ` \w+ = '?([^'\n]+)'?$`).FindStringSubmatch(read(t, "infra", template))
	if match == nil {
		t.Fatalf("infra/%s has no parameter %s with a default", template, parameter)
	}
	return match[1]
}

// queue is the queue of scale events in main.bicep.
func queue(t *testing.T) string {
	t.Helper()
	match := regexp.MustCompile(`(?m)^var queueName = '(.+)'$`).FindStringSubmatch(read(t, "infra", "main.bicep"))
	if match == nil {
		t.Fatal("infra/main.bicep names no queue")
	}
	return match[1]
}

// sample is the processor of infra/processors.yaml, read as the function app does with the app
// settings of main.bicep.
func sample(t *testing.T) (config.Config, config.Processor) {
	t.Helper()
	var document any
	testworld.Must(t, yaml.Unmarshal([]byte(read(t, "infra", "processors.yaml")), &document))
	inline, err := json.Marshal(document) // as string(processors) in Bicep does
	testworld.Must(t, err)
	c, err := config.Read(config.Input{ReadFile: os.ReadFile, Environ: []string{
		"FEEDSCALE_PROCESSORS=" + string(inline),
		"FEEDSCALE_TIMER_SCHEDULE=" + defaultOf(t, "main.bicep", "timerSchedule"),
		"FEEDSCALE_STATE=https://account.table.core.windows.net/feedscale",
		"FEEDSCALE_EVENTS=servicebus:SERVICEBUS/" + queue(t),
		"SERVICEBUS__fullyQualifiedNamespace=namespace.servicebus.windows.net",
		"SERVICEBUS__credential=managedidentity",
		"SERVICEBUS__clientId=00000000-0000-0000-0000-000000000000",
		"COSMOS__accountEndpoint=https://account.documents.azure.com:443/",
		"COSMOS__credential=managedidentity",
		"COSMOS__clientId=00000000-0000-0000-0000-000000000000",
	}})
	testworld.Must(t, err)
	return c, c.Processors[0]
}

func TestTheAppSettingsOfTheTemplatesAreRead(t *testing.T) {
	t.Parallel()
	c, p := sample(t)
	if got, want := c.Settings.Events.Queue, queue(t); got != want {
		t.Errorf("events go to the queue %q, want %q", got, want)
	}
	if got := c.Settings.State.Table; got.ServiceURL == "" || got.Name != "feedscale" {
		t.Errorf("state is kept in %+v, want the table feedscale by its address", got)
	}
	if got := p.Connection.Identity.Credential; got != config.CredentialManagedIdentity {
		t.Errorf("the connection signs in with %q, want a managed identity", got)
	}
	source := read(t, "infra", "main.bicep") + read(t, "infra", "modules", "functionapp.bicep")
	for _, name := range []string{
		"FEEDSCALE_PROCESSORS:", "FEEDSCALE_TIMER_SCHEDULE:", "FEEDSCALE_STATE:", "FEEDSCALE_EVENTS: 'servicebus:SERVICEBUS/${eventsName}'",
		"AzureWebJobsStorage__blobServiceUri:", "SERVICEBUS__fullyQualifiedNamespace:", "SERVICEBUS__credential: 'managedidentity'", "SERVICEBUS__clientId:",
		"__accountEndpoint': connection.endpoint", "__credential': 'managedidentity'", "__clientId': clientId", "__resourceId': connection.resourceId", "AZURE_CLIENT_ID: clientId",
	} {
		if !strings.Contains(source, name) {
			t.Errorf("the templates do not set %s", name)
		}
	}
}

// TestThroughputIsGrantedWhereItIsAskedForAlone: the role is separate, is granted to nothing by
// default, and has the permissions of docs/throughput.md.
func TestThroughputIsGrantedWhereItIsAskedForAlone(t *testing.T) {
	t.Parallel()
	main, role, docs := read(t, "infra", "main.bicep"), read(t, "infra", "modules", "roles", "throughput.bicep"), read(t, "docs", "throughput.md")
	if want := "for account in cosmosAccounts: if (account.?throughput ?? false) {\n    name: '${token}-throughput-"; !strings.Contains(main, want) {
		t.Error("main.bicep grants the role without being asked")
	}
	actions := regexp.MustCompile(`'(Microsoft\.[A-Za-z/]+/(?:read|write|action))'`).FindAllStringSubmatch(role, -1)
	if len(actions) == 0 {
		t.Fatal("the role has no actions")
	}
	for _, action := range actions {
		if !strings.Contains(docs, "\n"+action[1]+"\n") {
			t.Errorf("docs/throughput.md does not list %s", action[1])
		}
		if !strings.Contains(action[1], "/throughputSettings/") {
			t.Errorf("the role has %s", action[1])
		}
	}
	if listed := strings.Count(docs, "\nMicrosoft."); listed != len(actions) {
		t.Errorf("docs/throughput.md lists %d actions, and the role has %d", listed, len(actions))
	}
}

func TestTheSettingsThatTheTemplatePutsOutForConsumersAreRead(t *testing.T) {
	t.Parallel()
	source := read(t, "infra", "main.bicep")
	topic := regexp.MustCompile(`(?m)^var topicName = '(.+)'$`).FindStringSubmatch(source)
	written := regexp.MustCompile(`for consumer in consumers: '(servicebus:[^']+)'`).FindStringSubmatch(source)
	if topic == nil || written == nil {
		t.Fatal("infra/main.bicep names no topic, or puts out no settings of its subscriptions")
	}
	if topic[1] == queue(t) {
		t.Errorf("topic and queue are both %s, and share their names in a namespace", topic[1])
	}
	if got := defaultOf(t, "containerapps/main.bicep", "topicName"); got != topic[1] {
		t.Errorf("containerapps/main.bicep: topicName is %s, want %s", got, topic[1])
	}
	setting := strings.NewReplacer("${topicName}", topic[1], "${consumer.name}", "kubernetes").Replace(written[1])
	s, err := config.ReadSettings([]string{"FEEDSCALE_EVENTS=" + setting, "SERVICEBUS__fullyQualifiedNamespace=shop.servicebus.windows.net"})
	testworld.Must(t, err)
	if s.Events.Queue != topic[1] || s.Events.Subscription != "kubernetes" {
		t.Errorf("%s is read as %+v", setting, s.Events)
	}
}

func TestTheAlertsLookForWhatIsLogged(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	testworld.Must(t, fs.WalkDir(os.DirFS("../../pkg/poller"), ".", func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
			logged.WriteString(read(t, "pkg", "poller", name))
		}
		return err
	}))
	messages := regexp.MustCompile(`    message: '([^']+)'`).FindAllStringSubmatch(read(t, "infra", "modules", "alerts.bicep"), -1)
	if len(messages) != 7 {
		t.Fatalf("the alerts look for %d conditions, want 7", len(messages))
	}
	for _, message := range messages {
		if !strings.Contains(logged.String(), strconv.Quote(message[1])) {
			t.Errorf("an alert looks for %q, which pkg/poller does not log", message[1])
		}
	}
}

func TestEveryFunctionThatTheTemplatesNameExists(t *testing.T) {
	t.Parallel()
	source := read(t, "infra", "modules", "functionapp.bicep") + read(t, "infra", "kql", "failing.kql") + read(t, "infra", "containerapps", "main.bicep")
	named := regexp.MustCompile(`'function:(\w+)'|operation_Name == '(\w+)'|functionAppName, '(\w+)'\)`).FindAllStringSubmatch(source, -1)
	if len(named) != 3 {
		t.Errorf("the templates name %d functions, want 3", len(named))
	}
	for _, groups := range named {
		name := strings.Join(groups[1:], "")
		if _, err := os.Stat(filepath.Join("..", "..", "functions", name, "function.json")); err != nil {
			t.Errorf("the templates name the function %s: %v", name, err)
		}
	}
}

// manifest has the fields of Secret, TriggerAuthentication and ScaledObject (keda.sh/v1alpha1) that
// the KEDA samples may use.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Type       string            // Secret
	StringData map[string]string `yaml:"stringData"` // Secret
	Spec       struct {
		// TriggerAuthentication
		SecretTargetRef []struct{ Parameter, Name, Key string } `yaml:"secretTargetRef"`
		PodIdentity     *struct {                               // TriggerAuthentication
			Provider   string
			IdentityID string `yaml:"identityId"`
		} `yaml:"podIdentity"`
		ScaleTargetRef  struct{ Name string } `yaml:"scaleTargetRef"` // ScaledObject, as all below
		PollingInterval int                   `yaml:"pollingInterval"`
		CooldownPeriod  *int                  `yaml:"cooldownPeriod"`
		MinReplicaCount *int                  `yaml:"minReplicaCount"`
		MaxReplicaCount int                   `yaml:"maxReplicaCount"`
		Fallback        *struct {
			FailureThreshold int `yaml:"failureThreshold"`
			Replicas         int
		}
		Advanced struct {
			HPA struct {
				Behavior struct {
					ScaleUp   rules `yaml:"scaleUp"`
					ScaleDown rules `yaml:"scaleDown"`
				}
			} `yaml:"horizontalPodAutoscalerConfig"`
		}
		Triggers []struct {
			Type              string
			MetricType        string `yaml:"metricType"`
			Metadata          map[string]string
			AuthenticationRef struct{ Name string } `yaml:"authenticationRef"`
		}
	}
}

// rules are the limits of an HPA in one direction.
type rules struct {
	StabilizationWindowSeconds *int `yaml:"stabilizationWindowSeconds"`
	Policies                   []struct {
		Type          string
		Value         int
		PeriodSeconds int `yaml:"periodSeconds"`
	}
}

// manifests decodes the KEDA objects and the Secret of a file, by kind. An unknown field is an
// error. kubernetesObjects decodes all other objects.
func manifests(t *testing.T, file string) map[string]manifest {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(read(t, "infra", "keda", file))))
	found := make(map[string]manifest)
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return found
		}
		testworld.Must(t, err)
		text, err := yaml.Marshal(&document)
		testworld.Must(t, err)
		if !regexp.MustCompile(`(?m)^(apiVersion: keda\.sh/.*|kind: Secret)$`).Match(text) {
			continue
		}
		var m manifest
		known := yaml.NewDecoder(bytes.NewReader(text))
		known.KnownFields(true)
		testworld.Must(t, known.Decode(&m))
		if want := map[string]string{"Secret": "v1", "TriggerAuthentication": "keda.sh/v1alpha1", "ScaledObject": "keda.sh/v1alpha1"}[m.Kind]; m.APIVersion != want {
			t.Errorf("%s: %s has apiVersion %q, want %q", file, m.Kind, m.APIVersion, want)
		}
		if m.Metadata.Name == "" {
			t.Errorf("%s: %s has no name", file, m.Kind)
		}
		found[m.Kind] = m
	}
}

// triggerMetadata has the fields that each scaler reads.
var triggerMetadata = map[string][]string{
	"metrics-api": strings.Fields("url valueLocation targetValue activationTargetValue format unsafeSsl authMode method keyParamName"),
	"azure-servicebus": strings.Fields(`namespace queueName topicName subscriptionName messageCount activationMessageCount
		useRegex operation connectionFromEnv cloud endpointSuffix`),
}

func TestTheKEDASamplesHoldTogether(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"processor.yaml", "consumer.yaml"} {
		found := manifests(t, file)
		scaled, authentication := found["ScaledObject"], found["TriggerAuthentication"]
		if scaled.Spec.ScaleTargetRef.Name == "" || scaled.Spec.PollingInterval < 1 || scaled.Spec.CooldownPeriod == nil {
			t.Errorf("%s: scaleTargetRef, pollingInterval and cooldownPeriod have to be set", file)
		}
		if minimum := scaled.Spec.MinReplicaCount; minimum == nil || *minimum != 0 {
			t.Errorf("%s: minReplicaCount has to be 0", file)
		}
		if len(scaled.Spec.Triggers) != 1 {
			t.Fatalf("%s: %d triggers, want 1", file, len(scaled.Spec.Triggers))
		}
		trigger := scaled.Spec.Triggers[0]
		if trigger.MetricType != "AverageValue" {
			t.Errorf("%s: metricType is %q: the number is of all replicas together", file, trigger.MetricType)
		}
		if trigger.AuthenticationRef.Name != authentication.Metadata.Name {
			t.Errorf("%s: authenticationRef is %q, the TriggerAuthentication %q", file, trigger.AuthenticationRef.Name, authentication.Metadata.Name)
		}
		for field := range trigger.Metadata {
			if !slices.Contains(triggerMetadata[trigger.Type], field) {
				t.Errorf("%s: a trigger of type %s does not read %s", file, trigger.Type, field)
			}
		}
		for _, ref := range authentication.Spec.SecretTargetRef {
			if secret := found["Secret"]; ref.Name != secret.Metadata.Name || secret.StringData[ref.Key] == "" {
				t.Errorf("%s: there is no secret %s with the key %s", file, ref.Name, ref.Key)
			}
		}
	}
}

func TestTheKEDASampleOfAProcessorIsWhatItsConfigurationSays(t *testing.T) {
	t.Parallel()
	_, processor := sample(t)
	found := manifests(t, "processor.yaml")
	scaled := found["ScaledObject"]
	trigger := scaled.Spec.Triggers[0]
	if want := "https://APP.azurewebsites.net/api/processors/" + processor.Name; trigger.Metadata["url"] != want {
		t.Errorf("url is %q, want %q", trigger.Metadata["url"], want)
	}
	for field, want := range map[string]string{
		"valueLocation": "desiredReplicas", "targetValue": "1", "activationTargetValue": "0",
		"authMode": "apiKey", "method": "header", "keyParamName": "x-functions-key",
	} {
		if got := trigger.Metadata[field]; got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	if scaled.Spec.ScaleTargetRef.Name != processor.Target["deployment"] {
		t.Errorf("scaleTargetRef is %q, the processor's target %q", scaled.Spec.ScaleTargetRef.Name, processor.Target["deployment"])
	}
	if want := processor.Policy.MaxReplicas; want == nil || scaled.Spec.MaxReplicaCount != *want {
		t.Errorf("maxReplicaCount is %d, which is not the sample's", scaled.Spec.MaxReplicaCount)
	}
	// feedscale has already applied windows, rates and cooldown: KEDA and the HPA must not add
	// their own.
	up, down := scaled.Spec.Advanced.HPA.Behavior.ScaleUp, scaled.Spec.Advanced.HPA.Behavior.ScaleDown
	if *scaled.Spec.CooldownPeriod != 0 || down.StabilizationWindowSeconds == nil || *down.StabilizationWindowSeconds != 0 {
		t.Errorf("cooldownPeriod is %d, the window to scale down %v: both add to feedscale's own", *scaled.Spec.CooldownPeriod, down.StabilizationWindowSeconds)
	}
	if len(up.Policies) != 1 || up.Policies[0].Type != "Pods" || up.Policies[0].Value < scaled.Spec.MaxReplicaCount {
		t.Errorf("the policies to scale up are %+v, want one that allows maxReplicaCount at once", up.Policies)
	}
	if f := scaled.Spec.Fallback; f != nil {
		t.Errorf("fallback is %+v: without one KEDA holds the replicas", f)
	}
	authentication := found["TriggerAuthentication"]
	if refs := authentication.Spec.SecretTargetRef; len(refs) != 1 || refs[0].Parameter != "apiKey" {
		t.Errorf("secretTargetRef is %+v, want the parameter apiKey", refs)
	}
	bicep := read(t, "infra", "containerapps", "main.bicep")
	for _, field := range []string{"valueLocation", "targetValue", "activationTargetValue", "authMode", "method", "keyParamName"} {
		if line := field + ": '" + trigger.Metadata[field] + "'"; !strings.Contains(bicep, line) {
			t.Errorf("containerapps/main.bicep has no %s", line)
		}
	}
	if got := defaultOf(t, "containerapps/main.bicep", "processor"); got != processor.Name {
		t.Errorf("containerapps/main.bicep: processor is %s, want %s", got, processor.Name)
	}
}

// TestTheKEDASampleOfTheExternalScalerAddsNothingToTheDecision: every wait of KEDA and of the HPA
// would be added to feedscale's.
func TestTheKEDASampleOfTheExternalScalerAddsNothingToTheDecision(t *testing.T) {
	t.Parallel()
	_, processor := sample(t)
	found := manifests(t, "processor-external.yaml")
	spec := found["ScaledObject"].Spec
	if len(found) != 1 || len(spec.Triggers) != 1 {
		t.Fatalf("%d objects with %d triggers, want one with one", len(found), len(spec.Triggers))
	}
	trigger := spec.Triggers[0]
	if trigger.Type != "external-push" || trigger.MetricType != "AverageValue" || trigger.Metadata["processor"] != processor.Name || len(trigger.Metadata) != 2 {
		t.Errorf("the trigger is %+v, want external-push by AverageValue for %s", trigger, processor.Name)
	}
	if host, port, err := net.SplitHostPort(trigger.Metadata["scalerAddress"]); err != nil || !strings.HasPrefix(host, "feedscale.") || port != "6000" {
		t.Errorf("scalerAddress is %s", trigger.Metadata["scalerAddress"])
	}
	if spec.ScaleTargetRef.Name != processor.Target["deployment"] || spec.MinReplicaCount == nil || *spec.MinReplicaCount != 0 || spec.MaxReplicaCount != *processor.Policy.MaxReplicas {
		t.Errorf("the spec is %+v, which is not the sample's", spec)
	}
	if spec.CooldownPeriod == nil || *spec.CooldownPeriod != 0 || spec.PollingInterval < 1 || spec.Fallback != nil {
		t.Fatalf("the spec is %+v, want no cooldown and no fallback", spec)
	}
	for _, d := range []rules{spec.Advanced.HPA.Behavior.ScaleUp, spec.Advanced.HPA.Behavior.ScaleDown} {
		if w := d.StabilizationWindowSeconds; w == nil || *w != 0 || len(d.Policies) != 1 || d.Policies[0].Type != "Pods" || d.Policies[0].Value < 100 || d.Policies[0].PeriodSeconds != 15 {
			t.Errorf("the behavior is %+v, want no window and no limit", d)
		}
	}
}

func TestTheKEDASampleOfAConsumerWakesOnTheQueueOfTheTemplate(t *testing.T) {
	t.Parallel()
	found := manifests(t, "consumer.yaml")
	trigger := found["ScaledObject"].Spec.Triggers[0]
	if trigger.Type != "azure-servicebus" || trigger.Metadata["queueName"] != queue(t) || trigger.Metadata["activationMessageCount"] != "0" {
		t.Errorf("the trigger is %+v, want azure-servicebus on %s, active from one message", trigger, queue(t))
	}
	if got := defaultOf(t, "containerapps/main.bicep", "queueName"); got != queue(t) {
		t.Errorf("containerapps/main.bicep: queueName is %s, want %s", got, queue(t))
	}
	if f := found["ScaledObject"].Spec.Fallback; f == nil || f.FailureThreshold < 1 || f.Replicas != 1 {
		t.Errorf("fallback is %+v, want the one consumer", f)
	}
	authentication := found["TriggerAuthentication"]
	if identity := authentication.Spec.PodIdentity; identity == nil || identity.Provider != "azure-workload" {
		t.Errorf("podIdentity is %+v, want azure-workload", identity)
	}
}

// scalerOfSignals has the fields of a ScaledObject that matter when it follows a signal queue.
type scalerOfSignals struct {
	CooldownPeriod  int  `yaml:"cooldownPeriod"`
	MaxReplicaCount int  `yaml:"maxReplicaCount"`
	Fallback        *any `yaml:"fallback"`
	Advanced        struct {
		Config struct {
			Behavior struct {
				ScaleDown struct {
					Window *int `yaml:"stabilizationWindowSeconds"`
				} `yaml:"scaleDown"`
			}
		} `yaml:"horizontalPodAutoscalerConfig"`
	}
	Triggers []struct {
		Type, MetricType  string
		Metadata          map[string]string
		AuthenticationRef struct{ Name string } `yaml:"authenticationRef"`
	}
}

func TestTheSamplesThatFollowASignalQueueCountEachMessageAsAReplica(t *testing.T) {
	t.Parallel()
	_, processor := sample(t)
	signalQueue := processor.Name + "-replicas"
	var scaled scalerOfSignals
	decoder := yaml.NewDecoder(strings.NewReader(read(t, "infra", "keda", "processor-servicebus.yaml")))
	for {
		var m struct {
			Kind string
			Spec scalerOfSignals
		}
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		testworld.Must(t, err)
		if m.Kind == "ScaledObject" {
			scaled = m.Spec
		}
	}
	if len(scaled.Triggers) != 1 {
		t.Fatalf("%d triggers, want 1", len(scaled.Triggers))
	}
	trigger := scaled.Triggers[0]
	if m := trigger.Metadata; trigger.Type != "azure-servicebus" || m["queueName"] != signalQueue || m["messageCount"] != "1" || m["activationMessageCount"] != "0" {
		t.Errorf("the trigger is %+v, want one that counts each message of %s", trigger, signalQueue)
	}
	for field := range trigger.Metadata {
		if !slices.Contains(triggerMetadata[trigger.Type], field) {
			t.Errorf("a trigger of type %s does not read %s", trigger.Type, field)
		}
	}
	if window := scaled.Advanced.Config.Behavior.ScaleDown.Window; window == nil || *window != 0 || scaled.CooldownPeriod > 1 || scaled.Fallback != nil {
		t.Errorf("scale-down window %v, cooldown %d, fallback %v: feedscale has waited already, and the HPA holds what it has", window, scaled.CooldownPeriod, scaled.Fallback)
	}
	if want := processor.Policy.MaxReplicas; want == nil || scaled.MaxReplicaCount != *want {
		t.Errorf("maxReplicaCount is %d, which is not the sample's", scaled.MaxReplicaCount)
	}
	template := read(t, "infra", "containerapps", "signalqueue.bicep")
	for _, want := range []string{"param signalQueue string = '${processor}-replicas'", "type: 'azure-servicebus'", "identity: ruleIdentity.id", "messageCount: '1'", "activationMessageCount: '0'", "lifecycle: 'None'"} {
		if !strings.Contains(template, want) {
			t.Errorf("containerapps/signalqueue.bicep has no %s", want)
		}
	}
	for _, secret := range []string{"listKeys", "secrets:", "auth:"} {
		if strings.Contains(template, secret) {
			t.Errorf("containerapps/signalqueue.bicep has %s, and needs no key", secret)
		}
	}
}

func TestAzureYAMLDeploysWhatMakeDistStages(t *testing.T) {
	t.Parallel()
	type service struct {
		Project, Host, Language, Dist string
		Hooks                         map[string]struct{ Shell, Run string }
	}
	var project struct {
		Name             string
		Metadata         struct{ Template string }
		RequiredVersions struct{ Azd string } `yaml:"requiredVersions"`
		Infra            struct{ Provider, Path, Module string }
		Pipeline         struct{ Variables []string }
		Services         map[string]service
	}
	decoder := yaml.NewDecoder(strings.NewReader(read(t, "azure.yaml")))
	decoder.KnownFields(true)
	testworld.Must(t, decoder.Decode(&project))
	if !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`).MatchString(project.Name) {
		t.Errorf("name is %q, which azd refuses", project.Name)
	}
	if !strings.HasPrefix(project.Metadata.Template, project.Name+"@") {
		t.Errorf("metadata.template is %q, want %s and a version", project.Metadata.Template, project.Name)
	}
	if !regexp.MustCompile(`^>= 1\.\d+\.\d+( != 1\.\d+\.\d+)*$`).MatchString(project.RequiredVersions.Azd) {
		t.Errorf("requiredVersions.azd is %q, want the least version", project.RequiredVersions.Azd)
	}
	if i := project.Infra; i.Provider != "bicep" || read(t, i.Path, i.Module+".bicep") == "" {
		t.Errorf("infra is %+v, which leads to no template", i)
	}
	// azd finds the function app by a tag that names the service.
	tag := regexp.MustCompile(`'azd-service-name': '(\w+)'`).FindStringSubmatch(read(t, "infra", "modules", "functionapp.bicep"))
	if tag == nil {
		t.Fatal("the function app has no tag azd-service-name")
	}
	dist := regexp.MustCompile(`(?m)^DIST \?= (\w+)$`).FindStringSubmatch(read(t, "Makefile"))
	if dist == nil {
		t.Fatal("the Makefile does not say where it stages")
	}
	got := project.Services[tag[1]]
	if got.Project != "." || got.Host != "function" || got.Language != "custom" || got.Dist != dist[1] || got.Hooks["prepackage"].Run != "make dist" {
		t.Errorf("the service %s is %+v", tag[1], got)
	}
}

// settingOf matches a setting in a function.json: %NAME%.
var settingOf = regexp.MustCompile(`%(\w+)%`)

func TestEverySettingThatAFunctionReadsIsAnAppSetting(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "functions", "*", "function.json"))
	testworld.Must(t, err)
	source, found := read(t, "infra", "main.bicep"), 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		testworld.Must(t, err)
		for _, name := range settingOf.FindAllStringSubmatch(string(content), -1) {
			found++
			if !strings.Contains(source, name[1]+": ") {
				t.Errorf("%s reads %s, which infra/main.bicep does not set", file, name[0])
			}
		}
	}
	if found == 0 {
		t.Error("no function reads a setting: FEEDSCALE_TIMER_SCHEDULE was expected")
	}
}
