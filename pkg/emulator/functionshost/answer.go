package functionshost

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
)

// errNothing is an answer after which the host waits for a result until functionTimeout: a success
// without content (Workers/Http/DefaultHttpWorkerService.cs:198-214, seen on host 4.1037).
var errNothing = errors.New("the answer has no content: answer at least {}")

// answer is the handler's answer to an invocation.
type answer struct {
	Outputs     map[string]any
	Logs        []string
	ReturnValue any
}

// readAnswer reads an answer as the host does. If the status is not 2xx, the host ignores
// everything else.
func readAnswer(response *http.Response) (answer, error) {
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return answer{}, fmt.Errorf("response status code does not indicate success: %d", response.StatusCode)
	}
	raw, err := readAll(response.Body)
	if err != nil {
		return answer{}, fmt.Errorf("reading the answer: %w", err)
	}
	contentType := response.Header.Get("Content-Type")
	media, _, err := mime.ParseMediaType(contentType)
	isJSON := err == nil && (media == "application/json" || media == "text/json")
	switch {
	case response.ContentLength == 0 && len(raw) == 0:
		return answer{}, errNothing // whatever its type
	case !isJSON:
		return answer{}, fmt.Errorf("invalid HttpResponseMessage: the content type is %q, it must be application/json", contentType)
	case len(raw) == 0 || strings.TrimSpace(string(raw)) == "null":
		return answer{}, errNothing
	}
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return answer{}, fmt.Errorf("invalid HttpResponseMessage: no object with Outputs, Logs and ReturnValue: %w", err)
	}
	return a, nil
}

// bind assigns the answer's values to the function's output bindings. Values without a binding are
// dropped. If ReturnValue is an object and no binding takes it, its fields are outputs.
func (a answer) bind(f *function) (outputs map[string]any, returned any) {
	outputs = map[string]any{}
	takesReturn := false
	for _, b := range f.outputs() {
		takesReturn = takesReturn || b.name == returnBinding
		if value, ok := a.Outputs[b.name]; ok && value != nil {
			outputs[b.name] = b.value(value)
		}
	}
	object, _ := a.ReturnValue.(map[string]any)
	for _, b := range f.outputs() {
		switch {
		case takesReturn && b.name == returnBinding && a.ReturnValue != nil:
			returned = b.value(a.ReturnValue)
			outputs[b.name] = returned
		case !takesReturn && object[b.name] != nil:
			outputs[b.name] = object[b.name]
		}
	}
	return outputs, returned
}

// value is what the binding gets: a string that happens to be base64 is
// decoded, unless it is the body of an HTTP response or declared as binary.
func (b binding) value(value any) any {
	text, ok := value.(string)
	if !ok || b.binary || b.is("http") && b.name != returnBinding {
		return value
	}
	// .NET skips white space
	compact := strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "").Replace(text)
	if decoded, err := base64.StdEncoding.Strict().DecodeString(compact); err == nil {
		return decoded
	}
	return value
}
