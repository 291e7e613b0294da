// Renders a Helm chart with many sets of values, as `helm template` does.
//
// Usage: render CHART RELEASE KIND <VALUES >RESULTS
//
// KIND is what numbers of values are in templates: float64, or json.Number, as in Helm 3.18.0.
// VALUES is a JSON list of objects that are laid over the chart's values. RESULTS is a JSON list, for each of them
// {"objects": [...]} or {"error": "..."}. Templates see .Values, .Release, .Chart and .Files, and sprig's functions.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type table = map[string]interface{}

// files are those of the chart that are neither templates nor its own description.
type files map[string]string

func (f files) Get(name string) string { return f[name] }

func (f files) Glob(pattern string) files {
	found := files{}
	for name, text := range f {
		if matches, err := path.Match(pattern, name); err == nil && matches {
			found[name] = text
		}
	}
	return found
}

type result struct {
	Objects []table `json:"objects,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// decode puts JSON into value, with numbers as they are written where exact.
func decode(text []byte, exact bool, value interface{}) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if exact {
		decoder.UseNumber()
	}
	return decoder.Decode(value)
}

type chart struct {
	description table
	values      string
	templates   map[string]string
	files       files
}

// read returns the texts of all files below folder/under, by their path from folder. Links are followed.
func read(folder, under string) (map[string]string, error) {
	texts := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(folder, under))
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		name := path.Join(under, entry.Name())
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			inner, err := read(folder, name)
			if err != nil {
				return nil, err
			}
			for name, text := range inner {
				texts[name] = text
			}
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		texts[name] = string(text)
	}
	return texts, nil
}

func open(folder string) (*chart, error) {
	texts, err := read(folder, "")
	if err != nil {
		return nil, err
	}
	c := &chart{values: texts["values.yaml"], templates: map[string]string{}, files: files{}}
	if err := yaml.Unmarshal([]byte(texts["Chart.yaml"]), &c.description); err != nil {
		return nil, err
	}
	for name, text := range texts {
		switch {
		case strings.HasPrefix(name, "templates/"):
			c.templates[name] = text
		case name != "values.yaml" && name != "Chart.yaml" && name != "values.schema.json":
			c.files[name] = text
		}
	}
	return c, nil
}

// lay puts what over has in place of what under has; null takes it away.
func lay(over, under table) {
	for name, value := range over {
		inner, isTable := value.(table)
		below, wasTable := under[name].(table)
		switch {
		case value == nil:
			delete(under, name)
		case isTable && wasTable:
			lay(inner, below)
		default:
			under[name] = value
		}
	}
}

func functions(all *template.Template) template.FuncMap {
	functions := sprig.TxtFuncMap()
	delete(functions, "env")
	delete(functions, "expandenv")
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["fromYaml"] = func(text string) (table, error) {
		value := table{}
		return value, yaml.Unmarshal([]byte(text), &value)
	}
	functions["fromJson"] = func(text string) (table, error) {
		value := table{}
		return value, json.Unmarshal([]byte(text), &value)
	}
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text bytes.Buffer
		err := all.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	return functions
}

func (c *chart) render(release string, over table, exact bool) ([]table, error) {
	values := table{}
	text, err := yaml.YAMLToJSON([]byte(c.values))
	if err != nil {
		return nil, err
	}
	if err := decode(text, exact, &values); err != nil {
		return nil, err
	}
	lay(over, values)
	data := table{
		"Values":  values,
		"Release": table{"Name": release, "Namespace": "tensord", "Service": "Helm"},
		"Chart":   table{"Name": c.description["name"], "Version": c.description["version"]},
		"Files":   c.files,
	}
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	names := []string{}
	for name, text := range c.templates {
		if _, err := all.New(name).Parse(text); err != nil {
			return nil, err
		}
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	objects := []table{}
	for _, name := range names {
		var text bytes.Buffer
		if err := all.ExecuteTemplate(&text, name, data); err != nil {
			return nil, err
		}
		for _, document := range strings.Split("\n"+text.String(), "\n---\n") {
			object := table{}
			if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, document)
			}
			if len(object) > 0 {
				objects = append(objects, object)
			}
		}
	}
	return objects, nil
}

func run() error {
	if len(os.Args) != 4 || (os.Args[3] != "float64" && os.Args[3] != "json.Number") {
		return fmt.Errorf("usage: render CHART RELEASE float64|json.Number <VALUES >RESULTS")
	}
	exact := os.Args[3] == "json.Number"
	c, err := open(os.Args[1])
	if err != nil {
		return err
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var sets []table
	if err := decode(input, exact, &sets); err != nil {
		return err
	}
	results := []result{}
	for _, over := range sets {
		objects, err := c.render(os.Args[2], over, exact)
		if err != nil {
			results = append(results, result{Error: err.Error()})
		} else {
			results = append(results, result{Objects: objects})
		}
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}
