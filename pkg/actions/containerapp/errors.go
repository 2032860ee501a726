package containerapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// explain returns an error that says in one line what failed about an app and what to do.
func explain(target app, doing string, err error) error {
	if answer, ok := errors.AsType[*azcore.ResponseError](err); ok && answer.RawResponse != nil {
		return fmt.Errorf("%s %s: %s", doing, target, refusal(answer))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s %s took too long: see its revisions in the portal, and that Azure Resource Manager can be reached: %w", doing, target, err)
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = fmt.Errorf("no answer from Azure Resource Manager: %w", request.Err)
	}
	return fmt.Errorf("%s %s: %w", doing, target, err)
}

func refusal(answer *azcore.ResponseError) string {
	what := fmt.Sprintf("%d %s", answer.StatusCode, answer.ErrorCode)
	if answer.ErrorCode == "" {
		what = fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "the identity may not do this (" + what + "): give it the role Container Apps Contributor there, or Microsoft.App/containerApps/read and /write"
	case http.StatusNotFound:
		return "it does not exist (" + what + "): correct the target labels of the processor"
	case http.StatusConflict:
		return "another change of it is under way (" + what + ")"
	}
	if said := message(answer.RawResponse); said != "" {
		what += ": " + said
	}
	return "Azure Resource Manager answered " + what
}

// message returns the service's own error message; "" if there is none.
func message(answer *http.Response) string {
	body, err := runtime.Payload(answer)
	if err != nil {
		return ""
	}
	var said struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &said) != nil {
		return ""
	}
	return strings.Join(strings.Fields(said.Error.Message), " ")
}
