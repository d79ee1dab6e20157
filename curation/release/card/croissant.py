"""The Croissant description of a release (`croissant.json`), made from its manifest alone.

Croissant 1.0 (mlcommons.org/croissant/1.0): every file with its sha256, and the columns of each
configuration. Made from the manifest, so that a push can tell whether it was changed.
"""

import json
from typing import Any

from analysis.text.licences import hub_identifier
from curation.release.agreement import agreement_sentence
from curation.release.rows import LISTS, configs_of, default_columns
from db.shape import Shape, shape_in

CROISSANT = "croissant.json"
ENCODINGS = {
    "parquet": "application/x-parquet",
    "jsonl": "application/jsonlines",
    "csv": "text/csv",
}
TYPES = {"string": "sc:Text", "int64": "sc:Integer", "bool": "sc:Boolean", "float64": "sc:Float"}
_SPDX_CASE = {"mit": "MIT", "odbl": "ODbL-1.0", "odc-by": "ODC-By-1.0", "pddl": "PDDL-1.0"}
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def croissant(manifest: dict[str, Any]) -> str:
    """The text of `croissant.json` for a release with this manifest."""
    files: list[dict[str, Any]] = manifest["files"]
    shape = shape_in(manifest)
    configs = list(dict.fromkeys(file["config"] for file in files))
    described = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": str(manifest["name"]),
        "description": (
            f"{manifest['counts']['groups']} groups for training retrieval models that follow "
            f"instructions, grown from the dataset {manifest['dataset']}."
        ),
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "license": [spdx(licence) for licence in manifest["licences"]] or ["NOASSERTION"],
        "url": f"urn:sha256:{manifest['content_sha256']}",
        "version": f"1.0.0+{manifest['content_sha256'][:12]}",
        "datePublished": str(manifest["created_at"]),
        "creator": {"@type": "sc:Organization", "name": "InF Studio"},
        "citeAs": "arXiv:2505.21439",
        **_agreement(manifest),
        "distribution": [_file(file, manifest["format"]) for file in files],
        "recordSet": [
            _record_set(config, file, manifest["format"], shape)
            for config in configs
            for file in files
            if file["config"] == config
        ],
    }
    return json.dumps(described, ensure_ascii=False, indent=1) + "\n"


def _agreement(manifest: dict[str, Any]) -> dict[str, Any]:
    """The agreement of judges in the words of the RAI vocabulary; releases of before have none."""
    found = [agreement_sentence(each) for each in manifest.get("agreement", ())]
    return {"rai:dataAnnotationAnalysis": found} if found else {}


def spdx(licence: str) -> str:
    """The SPDX identifier of a licence, or the name as given where the Hub knows none."""
    name = hub_identifier(licence)
    if name in ("other", "unknown"):
        return licence or "NOASSERTION"
    return _SPDX_CASE.get(name, name.upper().replace("APACHE", "Apache"))


def _file(file: dict[str, Any], format: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": file["path"],
        "name": file["path"],
        "contentUrl": file["path"],
        "contentSize": f"{file['bytes']} B",
        "encodingFormat": ENCODINGS[format],
        "sha256": file["sha256"],
    }


def _record_set(config: str, file: dict[str, Any], format: str, shape: Shape) -> dict[str, Any]:
    """The records of one file; its id is the file's path without the ending."""
    name = file["path"].removesuffix(f".{format}")
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"Configuration {config}, split {file['split']}.",
        "field": [
            _field(name, file["path"], column, kind, shape)
            for column, kind in configs_of(shape)[config].items()
        ],
    }


def _field(record_set: str, path: str, column: str, kind: str, shape: Shape) -> dict[str, Any]:
    known = default_columns(shape)
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{record_set}/{column}",
        "name": column,
        "description": known[column].meaning if column in known else column,
    }
    source = {"fileObject": {"@id": path}, "extract": {"column": column}}
    if kind not in LISTS:
        return field | {"dataType": TYPES[kind], "source": source}
    return field | {
        "repeated": True,
        "source": source,
        "subField": [
            {
                "@type": "cr:Field",
                "@id": f"{record_set}/{column}/{part}",
                "name": part,
                "dataType": "sc:Text",
                "source": source | {"transform": {"jsonPath": part}},
            }
            for part in LISTS[kind]
        ],
    }
