{{- define "tensord.selector" -}}
app.kubernetes.io/name: tensord
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tensord.chartLabels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "tensord.metadata" -}}
name: {{ .Release.Name }}
labels:
  {{- include "tensord.selector" . | nindent 2 }}
  {{- include "tensord.chartLabels" . | nindent 2 }}
{{- end }}

{{- /* Options as TOML: strings, numbers, booleans and lists of them are written alike in JSON. */}}
{{- define "tensord.toml" -}}
{{- range $name, $value := .Values.options }}
{{ $name }} = {{ toJson $value }}
{{- end }}
{{- end }}
