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

{{- /* Fails where .known lacks .name. .path is where it is. */}}
{{- define "tensord.checkName" -}}
{{- if not (hasKey .known .name) -}}
{{- $nearest := include "tensord.nearest" (dict "name" .name "known" .known) -}}
{{- fail (printf "there is no value '%s%s'; the nearest is '%s%s'" .path .name .path $nearest) -}}
{{- end -}}
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
{{- include "tensord.checkName" (dict "name" $name "known" $at.known "path" $at.path) -}}
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

{{- /* Fails for an option of .options that the server has not (.known are those it has), and for a drain that is no number:
pods get time for it. Helm has numbers as their text, too: what they are in JSON tells them from strings. */}}
{{- define "tensord.checkOptions" -}}
{{- $known := dict -}}
{{- range .known }}{{ $_ := set $known . true }}{{ end -}}
{{- range $name, $_ := .options -}}
{{- include "tensord.checkName" (dict "name" $name "known" $known "path" "options.") -}}
{{- end -}}
{{- $drain := index .options "drain-timeout-seconds" -}}
{{- if not (regexMatch `^(null|[0-9.]+([eE][+-]?[0-9]+)?)$` (toJson $drain)) -}}
{{- fail (printf "options.drain-timeout-seconds is %s, wanted a number of seconds" (toJson $drain)) -}}
{{- end -}}
{{- end }}

{{- /* Fails for an option of .options that another value of .values sets, and for tokens without TLS. */}}
{{- define "tensord.checkOwners" -}}
{{- $owners := dict "insecure" "tls.enabled" "tls-certificate" "tls.enabled" "tls-key" "tls.enabled" -}}
{{- $_ := set $owners "tls-client-ca" "tls.clientCertificates" -}}
{{- $_ := set $owners "operators" "tls.operators" -}}
{{- $_ := set $owners "metrics-tls-certificate" "tls.enabled" -}}
{{- $_ := set $owners "metrics-tls-key" "tls.enabled" -}}
{{- $_ := set $owners "require-gpu" "gpu.enabled" -}}
{{- $_ := set $owners "tenants" "tenants.enabled" -}}
{{- if .tenants.enabled }}{{ $_ := set $owners "tokens" "tenants.enabled" }}{{ end -}}
{{- if .redis.enabled -}}
{{- $_ := set $owners "plan-exchange" "redis.enabled" -}}
{{- $_ := set $owners "plan-exchange-password-file" "redis.enabled" -}}
{{- end -}}
{{- if or .monitoring.enabled .monitoring.tokenSecret.name -}}
{{- $_ := set $owners "metrics-token-file" "monitoring.tokenSecret" -}}
{{- end -}}
{{- range $name, $_ := .options -}}
{{- if hasKey $owners $name }}{{ fail (printf "options.%s is the chart's: %s" $name (get $owners $name)) }}{{ end -}}
{{- end -}}
{{- range $name := list "jwt-keys" "tokens" -}}
{{- if and (hasKey $.options $name) (not $.tls.enabled) -}}
{{- fail (printf "options.%s wants tls.enabled: clients send no token in plaintext" $name) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* Fails where .resources has the GPUs that .gpu adds. */}}
{{- define "tensord.checkResources" -}}
{{- range $part := list "requests" "limits" -}}
{{- if and $.gpu.enabled (hasKey (get $.resources $part | default dict) $.gpu.resource) -}}
{{- fail (printf "resources.%s has %s, wanted gpu.count" $part $.gpu.resource) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "tensord.checkValues" -}}
{{- $open := list "global" "options" "resources" "gpu.nodeSelector" "nodeSelector" "affinity" "podAnnotations" "monitoring.labels" -}}
{{- $known := .Files.Get "files/values.yaml" | fromYaml -}}
{{- include "tensord.check" (dict "values" (omit .Values "global") "known" $known "path" "" "open" $open) -}}
{{- $options := .Files.Get "files/options.yaml" | fromYaml -}}
{{- include "tensord.checkOptions" (dict "options" .Values.options "known" $options.options) -}}
{{- include "tensord.checkOwners" .Values -}}
{{- include "tensord.checkResources" .Values -}}
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
{{- $asks := or .Values.tls.clientCertificates .Values.tenants.enabled (hasKey .Values.options "jwt-keys") (hasKey .Values.options "tokens") -}}
{{- if and .Values.tls.enabled (not $asks) -}}
{{- fail "tls.enabled wants options.jwt-keys, options.tokens, tls.clientCertificates or tenants.enabled: somebody has to say who asks" -}}
{{- end -}}
{{- $byCertificate := and .Values.tls.enabled .Values.tls.clientCertificates -}}
{{- $others := or .Values.tls.operators .Values.tenants.enabled (hasKey .Values.options "jwt-keys") (hasKey .Values.options "tokens") -}}
{{- if and $byCertificate (not $others) -}}
{{- fail "tls.operators is empty, wanted the names of operators' certificates: without any nobody can drain a server or look after it" -}}
{{- end -}}
{{- end }}
