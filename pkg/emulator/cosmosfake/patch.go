package cosmosfake

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake/internal/sql"
)

// patch is a partial update: operations that are applied in order, if the condition holds.
type patch struct {
	condition  *sql.Query // nil: always
	operations []patchOperation
}

type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// mostPatchOperations is the service's limit.
const mostPatchOperations = 10

func parsePatch(body []byte) (*patch, error) {
	var input struct {
		Condition  string           `json:"condition"`
		Operations []patchOperation `json:"operations"`
	}
	// A bare list of operations is a patch without a condition.
	if json.Unmarshal(body, &input.Operations) != nil && json.Unmarshal(body, &input) != nil {
		return nil, badRequest("The input content is not a JSON object that describes a patch.")
	}
	if n := len(input.Operations); n == 0 || n > mostPatchOperations {
		return nil, badRequest("A patch has between 1 and %d operations.", mostPatchOperations)
	}
	p := &patch{operations: input.Operations}
	if input.Condition != "" {
		condition, err := sql.ParseCondition(input.Condition)
		if err != nil {
			return nil, badRequest("The condition of the patch is not of the form FROM c WHERE ...: %v", err)
		}
		p.condition = condition
	}
	return p, nil
}

func (p *patch) apply(document map[string]any) error {
	for _, o := range p.operations {
		if err := o.apply(document); err != nil {
			return badRequest("For operation %s of path %s: %v", o.Op, o.Path, err)
		}
	}
	return nil
}

var errNoSuchPath = errors.New("the path does not exist in the document")

func (o patchOperation) apply(document map[string]any) error {
	switch o.Op {
	case "add", "set":
		return change(document, o.Path, func(_ any, _, insertable bool) (any, bool, error) { return o.Value, insertable && o.Op == "add", nil })
	case "replace":
		return change(document, o.Path, func(_ any, exists, _ bool) (any, bool, error) {
			if !exists {
				return nil, false, errNoSuchPath
			}
			return o.Value, false, nil
		})
	case "incr":
		return change(document, o.Path, func(old any, exists, _ bool) (any, bool, error) {
			by, ok := o.Value.(float64)
			if !ok {
				return nil, false, errors.New("the value is not a number")
			}
			if !exists {
				return by, false, nil
			}
			switch from := old.(type) {
			case float64:
				return from + by, false, nil
			case json.Number:
				if n, err := from.Float64(); err == nil {
					return n + by, false, nil
				}
			}
			return nil, false, errors.New("the property is not a number")
		})
	case "remove":
		_, err := take(document, o.Path)
		return err
	case "move":
		value, err := take(document, o.From)
		if err != nil {
			return err
		}
		return change(document, o.Path, func(any, bool, bool) (any, bool, error) { return value, false, nil })
	}
	return errors.New("the operation is not one of add, set, replace, remove, incr and move")
}

// parent walks to the object or list that holds the last step of a path.
func parent(document map[string]any, path string) (holder any, last string, err error) {
	steps := strings.Split(path, "/")
	if len(steps) < 2 || steps[0] != "" || steps[1] == "" {
		return nil, "", errors.New("the path does not begin with /")
	}
	for i, s := range steps {
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
	}
	holder = document
	for _, step := range steps[1 : len(steps)-1] {
		switch h := holder.(type) {
		case map[string]any:
			holder = h[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(h) {
				return nil, "", errNoSuchPath
			}
			holder = h[i]
		}
	}
	return holder, steps[len(steps)-1], nil
}

// change replaces the value at a path by the result of fn. fn gets the old value, whether it
// exists, and whether a list could take an element there. Its second result asks to insert.
func change(document map[string]any, path string, fn func(old any, exists, insertable bool) (value any, insert bool, err error)) error {
	holder, last, err := parent(document, path)
	if err != nil {
		return err
	}
	switch h := holder.(type) {
	case map[string]any:
		old, exists := h[last]
		value, _, err := fn(old, exists, false)
		if err != nil {
			return err
		}
		h[last] = value
		return nil
	case []any:
		i, err := strconv.Atoi(last)
		if last == "-" {
			i, err = len(h), nil
		}
		if err != nil || i < 0 || i > len(h) {
			return errNoSuchPath
		}
		var old any
		if i < len(h) {
			old = h[i]
		}
		value, insert, err := fn(old, i < len(h), true)
		if err != nil {
			return err
		}
		if insert || i == len(h) {
			return assign(document, path, slices.Insert(h, i, value))
		}
		h[i] = value
		return nil
	}
	return errNoSuchPath
}

// take removes what is at a path and returns it.
func take(document map[string]any, path string) (any, error) {
	holder, last, err := parent(document, path)
	if err != nil {
		return nil, err
	}
	switch h := holder.(type) {
	case map[string]any:
		value, exists := h[last]
		if !exists {
			return nil, errNoSuchPath
		}
		delete(h, last)
		return value, nil
	case []any:
		i, err := strconv.Atoi(last)
		if err != nil || i < 0 || i >= len(h) {
			return nil, errNoSuchPath
		}
		value := h[i]
		return value, assign(document, path, slices.Delete(h, i, i+1))
	}
	return nil, errNoSuchPath
}

// assign replaces the list that holds the last step of a path, by one of another length.
func assign(document map[string]any, path string, list []any) error {
	return change(document, path[:strings.LastIndexByte(path, '/')], func(any, bool, bool) (any, bool, error) { return list, false, nil })
}
