{{- /* Pairs of neighbouring letters, by which names are compared. */}}
{{- define "tensord.pairs" -}}
{{- $name := lower . -}}
{{- $pairs := dict -}}
{{- range $i := until (int (sub (len $name) 1)) -}}
{{- $_ := set $pairs (substr $i (int (add $i 2)) $name) true -}}
{{- end -}}
{{- toJson $pairs -}}
{{- end }}

{{- /* The name of .known that shares most with .name. */}}
{{- define "tensord.nearest" -}}
{{- $pairs := include "tensord.pairs" .name | fromJson -}}
{{- $best := dict "share" -1 "name" "" -}}
{{- range $known, $_ := .known -}}
{{- $others := include "tensord.pairs" $known | fromJson -}}
{{- $common := 0 -}}
{{- range $pair, $_ := $others -}}
{{- if hasKey $pairs $pair }}{{ $common = add $common 1 }}{{ end -}}
{{- end -}}
{{- $share := int (div (mul 2000 $common) (add 1 (len $pairs) (len $others))) -}}
{{- if gt $share (int $best.share) }}{{ $_ := set $best "share" $share }}{{ $_ := set $best "name" $known }}{{ end -}}
{{- end -}}
{{- $best.name -}}
{{- end }}

{{- /* Fails for a name in .values that .known lacks, and for one that is null. .path is where they are; what is below .open may
have any name. */}}
{{- define "tensord.check" -}}
{{- $at := . -}}
{{- range $name, $_ := .known -}}
{{- if kindIs "invalid" (index $at.values $name) -}}
{{- fail (printf "value '%s%s' is null, wanted what values.yaml has there, or another" $at.path $name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := .values -}}
{{- $path := printf "%s%s" $at.path $name -}}
{{- if not (hasKey $at.known $name) -}}
{{- $nearest := include "tensord.nearest" (dict "name" $name "known" $at.known) -}}
{{- fail (printf "there is no value '%s'; the nearest is '%s%s'" $path $at.path $nearest) -}}
{{- end -}}
{{- if and (kindIs "map" $value) (not (has $path $at.open)) -}}
{{- include "tensord.check" (dict "values" $value "known" (get $at.known $name) "path" (printf "%s." $path) "open" $at.open) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* Fails where no address of option .name has .port, which Service, probes and network policy name. */}}
{{- define "tensord.checkPort" -}}
{{- $got := index .options .name -}}
{{- $suffix := printf ":%d" .port -}}
{{- $has := false -}}
{{- range (kindIs "slice" $got | ternary $got (list $got)) -}}
{{- $host := trimSuffix $suffix (toString .) -}}
{{- $reached := not (or (hasPrefix "127." $host) (has $host (list "localhost" "[::1]"))) -}}
{{- if and (hasSuffix $suffix (toString .)) $reached }}{{ $has = true }}{{ end -}}
{{- end -}}
{{- if not $has -}}
{{- fail (printf "options.%s is %s, wanted an address with port %d that is not loopback: the Service and probes name it" .name (toJson $got) .port) -}}
{{- end -}}
{{- end }}

{{- define "tensord.checkValues" -}}
{{- $open := list "global" "options" "resources" "gpu.nodeSelector" "nodeSelector" "affinity" "podAnnotations" "monitoring.labels" -}}
{{- $known := .Files.Get "files/values.yaml" | fromYaml -}}
{{- include "tensord.check" (dict "values" (omit .Values "global") "known" $known "path" "" "open" $open) -}}
{{- range $name, $port := dict "listen" 8470 "metrics-listen" 9470 "probe-listen" 9471 -}}
{{- include "tensord.checkPort" (dict "options" $.Values.options "name" $name "port" $port) -}}
{{- end -}}
{{- $names := dict -}}
{{- range .Values.secrets -}}
{{- if hasKey $names .name -}}
{{- fail (printf "secrets has '%s' twice, wanted a name for each: it is a folder" .name) -}}
{{- end -}}
{{- $_ := set $names .name true -}}
{{- end -}}
{{- if and .Values.tenants.enabled (not .Values.tls.enabled) -}}
{{- fail "tenants.enabled wants tls.enabled: clients send no token in plaintext" -}}
{{- end -}}
{{- $asks := or .Values.tls.clientCertificates .Values.tenants.enabled (hasKey .Values.options "jwt-keys") -}}
{{- if and .Values.tls.enabled (not $asks) -}}
{{- fail "tls.enabled wants options.jwt-keys, tls.clientCertificates or tenants.enabled: somebody has to say who asks" -}}
{{- end -}}
{{- end }}
