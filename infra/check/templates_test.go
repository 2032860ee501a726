package check_test

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// templates are the sources of infra/, by their paths in it.
func templates(t *testing.T) map[string]string {
	t.Helper()
	sources := make(map[string]string)
	testworld.Must(t, fs.WalkDir(os.DirFS(".."), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".bicep" && path.Ext(name) != ".bicepparam" {
			return err
		}
		source, err := os.ReadFile(path.Join("..", name))
		sources[name] = string(source)
		return err
	}))
	return sources
}

func TestTheTemplatesAreSound(t *testing.T) {
	t.Parallel()
	sources := templates(t)
	if len(sources["main.bicep"]) == 0 || len(sources["main.bicepparam"]) == 0 {
		t.Fatal("main.bicep or its sample is missing")
	}
	for _, finding := range findings(parse(t, sources)) {
		t.Errorf("infra/%s", finding)
	}
}

func TestEveryTemplateSaysWhatItIsForAndHowToRunIt(t *testing.T) {
	t.Parallel()
	for name, source := range templates(t) {
		comment, _, _ := strings.Cut(source, "\n\n")
		if !strings.HasPrefix(comment, "// ") || !strings.Contains(comment, "Run: ") && !strings.Contains(comment, "run it") && !strings.Contains(comment, "runs it") {
			t.Errorf("infra/%s does not begin with a comment that says how to run it", name)
		}
	}
}

func TestTheCheckFinds(t *testing.T) {
	t.Parallel()
	const module = `
@description('d')
param needed string
@description('d')
param optional string = needed
@description('d')
param nullable string?
@description('d')
output out string = '${optional}${nullable}'
`
	tests := map[string]struct {
		main string // main.bicep, beside module.bicep
		want []string
	}{
		"nothing in a sound file": {
			main: `
metadata description = 'd'
@description('d')
param names string[]
var list = map(filter(names, n => !empty(n)), n => { key: n, value: length(n) })
resource a 'Microsoft.A/bs@2025-01-01' = {
  name: 'a'
  resource c 'cs' = if (empty(list)) {
    name: 'c'
  }
}
resource loop 'Microsoft.A/bs/ds@2025-01-01' = [for (name, i) in names: if (i > 0) {
  parent: a
  name: name
}]
module m 'module.bicep' = [for name in names: {
  name: name
  params: { needed: a::c.id }
}]
module n 'module.bicep' = if (empty(list)) {
  params: {
    // why
    needed: 'x'
    optional: 'y'
  }
}
@description('d')
output x string = '${m[0].outputs.out}${n!.outputs.out}${reduce(names, '', (all, one) => all + one)}'
`,
		},
		"a brace that is missing":           {main: "resource a 'Microsoft.A/bs@2025-01-01' = {\n  name: 'a'\n", want: []string{"main.bicep:2: does not fit the grammar"}},
		"a bracket that is missing":         {main: "resource a 'Microsoft.A/bs@2025-01-01' = {\n  name: [\n    'a'\n}\n", want: []string{"main.bicep:3: does not fit the grammar"}},
		"a quote that is missing":           {main: "@description('d)\noutput x string = 'a'\n", want: []string{"main.bicep:1: does not fit the grammar"}},
		"a name that is not declared":       {main: "resource a 'Microsoft.A/bs@2025-01-01' = {\n  name: nmae\n}\n", want: []string{"main.bicep:2: nmae is not declared"}},
		"such a name in a text":             {main: "resource a 'Microsoft.A/bs@2025-01-01' = {\n  name: 'a${b}'\n}\n", want: []string{"main.bicep:2: b is not declared"}},
		"such a name as a key":              {main: "resource a 'Microsoft.A/bs@2025-01-01' = {\n  '${b}': 1\n}\n", want: []string{"main.bicep:2: b is not declared"}},
		"a type that is not declared":       {main: "@description('d')\nparam x thing[]\n@description('d')\noutput y array = x\n", want: []string{"main.bicep:2: thing is not declared"}},
		"a loop's name outside the loop":    {main: "resource a 'Microsoft.A/bs@2025-01-01' = [for b in [b]: {\n  name: b\n}]\n", want: []string{"main.bicep:1: b is not declared"}},
		"a lambda's name outside of it":     {main: "@description('d')\noutput x array = concat(map([1], n => n), [n])\n", want: []string{"main.bicep:2: n is not declared"}},
		"a function that does not exist":    {main: "@description('d')\noutput x string = toLowre('a')\n", want: []string{"main.bicep:2: toLowre() is not a known function"}},
		"a decorator that does not exist":   {main: "@describe('d')\n@description('d')\noutput x string = 'a'\n", want: []string{"main.bicep:1: @describe is not a known decorator"}},
		"a parameter that is never used":    {main: "@description('d')\nparam x string\n", want: []string{"main.bicep:2: x is never used"}},
		"a variable that is never used":     {main: "var x = 1\n", want: []string{"main.bicep:1: x is never used"}},
		"a type that is never used":         {main: "type x = { a: string }\n", want: []string{"main.bicep:1: x is never used"}},
		"a name that is declared twice":     {main: "var x = 1\nvar x = 2\n@description('d')\noutput y int = x\n", want: []string{"main.bicep:2: x is declared twice"}},
		"a parameter without a description": {main: "param x string\n@description('d')\noutput y string = x\n", want: []string{"main.bicep:1: x has no @description"}},
		"an output without a description":   {main: "@allowed(['a'])\noutput y string = 'a'\n", want: []string{"main.bicep:2: y has no @description"}},
		"a module without its file":         {main: "module m 'modul.bicep' = {\n  name: 'm'\n}\n", want: []string{"main.bicep:1: module m: there is no file modul.bicep"}},
		"a parameter that a module has not": {main: "module m 'module.bicep' = {\n  params: { needed: 'a', more: 'b' }\n}\n", want: []string{"main.bicep:1: module.bicep has no parameter more"}},
		"a parameter that a module misses":  {main: "module m 'module.bicep' = if (true) {\n  params: { optional: 'a' }\n}\n", want: []string{"main.bicep:1: module.bicep requires the parameter needed"}},
		"a module that is given nothing":    {main: "module m 'module.bicep' = {\n  name: 'm'\n}\n", want: []string{"main.bicep:1: module.bicep requires the parameter needed"}},
		"an output that a module has not": {
			main: "module m 'module.bicep' = {\n  params: { needed: 'a' }\n}\n@description('d')\noutput x string = m!.outputs.in\n",
			want: []string{"main.bicep:5: module.bicep has no output in"},
		},
		"a nested resource that is not there": {
			main: "resource a 'Microsoft.A/bs@2025-01-01' = {\n  name: 'a'\n}\n@description('d')\noutput x string = a::b.id\n",
			want: []string{"main.bicep:5: b is not a nested resource"},
		},
		"a resource without its version": {main: "resource a 'Microsoft.A/bs' = {\n  name: 'a'\n}\n", want: []string{"main.bicep:1: Microsoft.A/bs is not a type of resource with its API version"}},
		"a preview of an API":            {main: "resource a 'Microsoft.A/bs@2025-01-01-preview' = {\n  name: 'a'\n}\n", want: []string{"main.bicep:1: Microsoft.A/bs@2025-01-01-preview is not a type of resource with its API version"}},
		"two versions of one type": {
			main: "resource a 'Microsoft.A/bs@2025-01-01' = {\n  name: 'a'\n}\nresource b 'Microsoft.A/bs@2025-01-02' = {\n  name: 'b'\n}\n",
			want: []string{"main.bicep:4: Microsoft.A/bs has API version 2025-01-02 here and 2025-01-01 elsewhere"},
		},
	}
	sources := map[string]string{"module.bicep": module}
	for name, tt := range tests {
		sources[name] = tt.main
	}
	trees := parse(t, sources)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := findings(map[string]*node{"main.bicep": trees[name], "module.bicep": trees["module.bicep"]})
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestTheCheckFindsInAFileOfParameters(t *testing.T) {
	t.Parallel()
	const template = "@description('d')\nparam a string\n@description('d')\noutput b string = a\n"
	tests := map[string]struct {
		params string
		want   []string
	}{
		"nothing in a sound one":                 {params: "using 'main.bicep'\nparam a = 'x'\n"},
		"a parameter that the template has not":  {params: "using 'main.bicep'\nparam a = 'x'\nparam b = 'y'\n", want: []string{"main.bicepparam:1: main.bicep has no parameter b"}},
		"a parameter that the template requires": {params: "using 'main.bicep'\n", want: []string{"main.bicepparam:1: main.bicep requires the parameter a"}},
		"a template that is not there":           {params: "using 'mian.bicep'\nparam a = 'x'\n", want: []string{"main.bicepparam:1: there is no file mian.bicep"}},
		"no template":                            {params: "param a = 'x'\n", want: []string{"main.bicepparam:1: has no using"}},
		"a name that is not declared":            {params: "using 'main.bicep'\nparam a = x\n", want: []string{"main.bicepparam:2: x is not declared"}},
	}
	sources := map[string]string{"main.bicep": template}
	for name, tt := range tests {
		sources[name+".bicepparam"] = tt.params
	}
	trees := parse(t, sources)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := findings(map[string]*node{"main.bicep": trees["main.bicep"], "main.bicepparam": trees[name+".bicepparam"]})
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
