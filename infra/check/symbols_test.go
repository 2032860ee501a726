package check_test

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The functions and decorators of Bicep that the templates may use. Add one
// here when a template needs it.
var (
	functions = strings.Fields(`cidrSubnet concat contains deployer deployment empty environment fail filter flatten guid items join json last
		length listKeys loadTextContent loadYamlContent map readEnvironmentVariable reduce replace resourceGroup resourceId split string
		subscription subscriptionResourceId take toLower toObject union uniqueString`)
	decorators = strings.Fields("allowed batchSize description export maxLength maxValue minLength minValue sealed secure")
)

// resourceType matches the type of a resource: provider, types and API version, which must not be a
// preview. Only diagnostic settings may use one.
var resourceType = regexp.MustCompile(`^(Microsoft\.[A-Za-z]+(/[A-Za-z]+)+@20\d\d-\d\d-\d\d|Microsoft\.Insights/diagnosticSettings@2021-05-01-preview)$`)

// template is a file with its declarations.
type template struct {
	name    string
	root    *node
	symbols map[string]*symbol
	outputs map[string]bool
	nested  map[string]bool   // resources declared within a resource
	modules map[string]string // path of the file, by the module's symbol
	broken  bool              // does not fit the grammar, and is not checked further
}

// symbol is a name that a file declares.
type symbol struct {
	kind     string // the declaration's type in the grammar
	line     int
	required bool // of a parameter: it has no default and is not nullable
	used     bool
}

// findings checks files, given by slash-separated paths. All of them fit the grammar. Every name is
// declared once and used. A module's file exists, and gets the parameters that it has and requires.
// Outputs that are read exist. Parameters and outputs have descriptions. A resource type has one
// API version.
func findings(trees map[string]*node) []string {
	c := &checker{files: make(map[string]*template), versions: make(map[string]string)}
	names := slices.Sorted(maps.Keys(trees))
	for _, name := range names {
		c.files[name] = &template{
			name: name, root: trees[name], symbols: make(map[string]*symbol), outputs: make(map[string]bool),
			nested: make(map[string]bool), modules: make(map[string]string),
		}
		c.read(c.files[name])
	}
	for _, name := range names {
		c.check(c.files[name])
	}
	return c.found
}

type checker struct {
	files    map[string]*template
	versions map[string]string // API version, by type of resource
	found    []string
}

func (c *checker) report(t *template, line int, format string, arguments ...any) {
	c.found = append(c.found, fmt.Sprintf("%s:%d: %s", t.name, line, fmt.Sprintf(format, arguments...)))
}

// read collects the declarations of a file.
func (c *checker) read(t *template) {
	if line, broken := broken(t.root); broken {
		c.report(t, line, "does not fit the grammar")
		t.broken = true
		return
	}
	described := false
	for _, n := range t.root.Children {
		if n.Type == "decorators" {
			described = slices.ContainsFunc(n.Children, func(d *node) bool { return d.Children[0].Children[0].Text == "description" })
			continue
		}
		id := n.first("identifier")
		switch n.Type {
		case "parameter_declaration", "output_declaration":
			if !described {
				c.report(t, n.Line, "%s has no @description", id.Text)
			}
		}
		switch n.Type {
		case "output_declaration":
			t.outputs[id.Text] = true
		case "module_declaration":
			t.modules[id.Text] = path.Join(path.Dir(t.name), n.first("string").literal())
			c.declare(t, n, id)
		case "parameter_declaration", "variable_declaration", "resource_declaration", "type_declaration":
			c.declare(t, n, id)
		case "import_functionality", "user_defined_function":
			c.report(t, n.Line, "imports and functions of one's own are not followed by this check")
		}
		described = false
	}
}

// broken finds the first place that does not fit the grammar.
func broken(n *node) (line int, found bool) {
	if n.Broken {
		return n.Line, true
	}
	for _, child := range n.Children {
		if line, found = broken(child); found {
			return line, true
		}
	}
	return 0, false
}

func (c *checker) declare(t *template, n, id *node) {
	if t.symbols[id.Text] != nil {
		c.report(t, n.Line, "%s is declared twice", id.Text)
	}
	s := &symbol{kind: n.Type, line: n.Line}
	if kind := n.first("type"); kind != nil {
		s.required = len(n.Children) == 2 && kind.first("nullable_type") == nil
	}
	t.symbols[id.Text] = s
}

func (c *checker) check(t *template) {
	if t.broken {
		return
	}
	c.walk(t, t.root, nil)
	if strings.HasSuffix(t.name, ".bicepparam") {
		c.checkParameters(t)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(t.symbols)) {
		switch s := t.symbols[name]; s.kind {
		case "resource_declaration", "module_declaration":
		default:
			if !s.used {
				c.report(t, s.line, "%s is never used", name)
			}
		}
	}
}

// walk checks every use of a name. locals are the names of the loops and lambdas around a node.
func (c *checker) walk(t *template, n *node, locals []string) {
	children := n.Children
	switch n.Type {
	case "identifier":
		c.use(t, n, locals)
	case "import_functionality", "user_defined_function":
		return
	case "parameter_declaration", "variable_declaration", "output_declaration", "type_declaration", "metadata_declaration":
		children = children[1:]
	case "resource_declaration":
		c.checkType(t, n)
		children = children[1:]
	case "module_declaration":
		c.checkModule(t, n)
		children = children[1:]
	case "object_property":
		if children[0].Type == "identifier" && len(children) > 1 {
			children = children[1:]
		}
	case "decorator":
		call := n.first("call_expression")
		if name := call.Children[0].Text; !slices.Contains(decorators, name) {
			c.report(t, n.Line, "@%s is not a known decorator", name)
		}
		children = call.Children[1:]
	case "call_expression":
		if name := children[0]; name.Type == "identifier" {
			if !slices.Contains(functions, name.Text) {
				c.report(t, n.Line, "%s() is not a known function", name.Text)
			}
			children = children[1:]
		}
	case "member_expression":
		c.checkOutput(t, n)
	case "resource_expression":
		if name := children[1].Text; !t.nested[name] {
			c.report(t, n.Line, "%s is not a nested resource", name)
		}
		children = children[:1]
	case "for_statement":
		names := locals
		for _, child := range children {
			switch {
			case child.Field == "initializer":
				names = append(slices.Clone(locals), child.Text)
			case child.Type == "for_loop_parameters":
				names = append(slices.Clone(locals), child.Children[0].Text, child.Children[1].Text)
			case child.Field == "body":
				c.walk(t, child, names)
			default:
				c.walk(t, child, locals)
			}
		}
		return
	case "arguments":
		for _, argument := range children {
			// The grammar may end a lambda too early, so its names count in the whole argument.
			c.walk(t, argument, append(slices.Clone(locals), lambdaNames(argument)...))
		}
		return
	}
	for _, child := range children {
		c.walk(t, child, locals)
	}
}

// lambdaNames returns the names that the lambdas in an argument give.
func lambdaNames(n *node) (names []string) {
	if n.Type == "lambda_expression" {
		given := n.Children[:1]
		if given[0].Type == "parenthesized_expression" {
			given = given[0].Children
		}
		for _, id := range given {
			names = append(names, id.Text)
		}
	}
	for _, child := range n.Children {
		names = append(names, lambdaNames(child)...)
	}
	return names
}

func (c *checker) use(t *template, n *node, locals []string) {
	if slices.Contains(locals, n.Text) {
		return
	}
	s := t.symbols[n.Text]
	if s == nil {
		c.report(t, n.Line, "%s is not declared", n.Text)
		return
	}
	s.used = true
}

// checkType checks the type of a resource, and registers the resources declared within it.
func (c *checker) checkType(t *template, n *node) {
	name := n.first("string").literal()
	if !strings.Contains(name, "/") {
		t.nested[n.Children[0].Text] = true // its type continues its parent's
		return
	}
	if !resourceType.MatchString(name) {
		c.report(t, n.Line, "%s is not a type of resource with its API version", name)
		return
	}
	kind, version, _ := strings.Cut(name, "@")
	if earlier, ok := c.versions[kind]; ok && earlier != version {
		c.report(t, n.Line, "%s has API version %s here and %s elsewhere", kind, version, earlier)
	}
	c.versions[kind] = version
}

// checkModule compares the parameters of a module with its file.
func (c *checker) checkModule(t *template, n *node) {
	target := c.files[t.modules[n.Children[0].Text]]
	if target == nil {
		c.report(t, n.Line, "module %s: there is no file %s", n.Children[0].Text, t.modules[n.Children[0].Text])
		return
	}
	given := make(map[string]bool)
	if params := body(n).property("params"); params != nil {
		for _, p := range params.Children {
			if p.Type == "object_property" { // otherwise a comment
				given[p.Children[0].Text] = true
			}
		}
	}
	c.compare(t, n.Line, given, target)
}

// body returns the object of a declaration, inside its condition and loop.
func body(n *node) *node {
	for _, c := range n.Children {
		switch c.Type {
		case "object":
			return c
		case "if_statement", "for_statement":
			return body(c)
		}
	}
	return &node{}
}

// checkParameters compares a file of parameters with its template.
func (c *checker) checkParameters(t *template) {
	using := t.root.first("using_statement")
	if using == nil {
		c.report(t, 1, "has no using")
		return
	}
	file := path.Join(path.Dir(t.name), using.first("string").literal())
	target := c.files[file]
	if target == nil {
		c.report(t, using.Line, "there is no file %s", file)
		return
	}
	given := make(map[string]bool)
	for name := range t.symbols {
		given[name] = true
	}
	c.compare(t, using.Line, given, target)
}

func (c *checker) compare(t *template, line int, given map[string]bool, target *template) {
	if target.broken {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if s := target.symbols[name]; s == nil || s.kind != "parameter_declaration" {
			c.report(t, line, "%s has no parameter %s", target.name, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(target.symbols)) {
		if s := target.symbols[name]; s.kind == "parameter_declaration" && s.required && !given[name] {
			c.report(t, line, "%s requires the parameter %s", target.name, name)
		}
	}
}

// checkOutput checks MODULE.outputs.NAME, also after an index or a !.
func (c *checker) checkOutput(t *template, n *node) {
	outputs := n.Children[0]
	if outputs.Type != "member_expression" || outputs.Children[1].Text != "outputs" {
		return
	}
	module := outputs.Children[0]
	for module.Type == "subscript_expression" || module.Type == "nullable_type" {
		module = module.Children[0]
	}
	target := c.files[t.modules[module.Text]]
	if name := n.Children[1].Text; target != nil && !target.broken && !target.outputs[name] {
		c.report(t, n.Line, "%s has no output %s", target.name, name)
	}
}
