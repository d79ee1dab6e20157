// The page to try routes: made of openapi.json; every text is set as text, never as markup.
const make = (tag, text, into) => {
  const one = document.createElement(tag);
  if (text) one.textContent = text;
  into?.append(one);
  return one;
};

const example = (schema) => {
  const found = {};
  for (const name of schema.required ?? []) {
    const kind = schema.properties[name].type;
    found[name] = kind === "integer" || kind === "number" ? 1 : kind === "array" ? [] : "";
  }
  return JSON.stringify(found, null, 1);
};

const send = async (base, path, method, operation, fields, body, shown) => {
  const query = new URLSearchParams();
  const headers = {};
  const token = document.getElementById("token").value.trim();
  if (token) headers.Authorization = `Bearer ${token}`;
  for (const [parameter, field] of fields) {
    if (!field.value) continue;
    if (parameter.in === "path")
      path = path.replace(`{${parameter.name}}`, encodeURIComponent(field.value));
    if (parameter.in === "query") query.append(parameter.name, field.value);
    if (parameter.in === "header") headers[parameter.name] = field.value;
  }
  const kinds = Object.keys(operation.requestBody?.content ?? {});
  if (kinds.length) headers["Content-Type"] = kinds[0];
  const asked = query.size ? `?${query}` : "";
  const options = { method, headers, credentials: "omit", body: body?.value };
  const answer = await fetch(`${base}${path}${asked}`, options);
  const etag = answer.headers.get("ETag");
  shown.textContent = `${answer.status} ${etag ? `ETag ${etag}` : ""}\n`;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read())
    shown.textContent += part.value;
  try {
    const [head, text] = [shown.textContent.split("\n", 1)[0], shown.textContent];
    shown.textContent = `${head}\n${JSON.stringify(JSON.parse(text.slice(head.length)), null, 1)}`;
  } catch {
    return; // not JSON, as events are not
  }
};

const draw = (base, path, method, operation, into) => {
  const one = make("details", "", into);
  const head = make("summary", "", one);
  make("code", `${method.toUpperCase()} ${path}`, head);
  head.append(` ${operation.summary}`);
  make("p", `Right: ${operation["x-rights"].join(" or ") || "admin"}`, one);
  if (operation.description) make("p", operation.description, one);
  const fields = operation.parameters.map((parameter) => {
    const label = make("label", `${parameter.name}${parameter.required ? " *" : ""} `, one);
    const field = make("input", "", label);
    if (parameter.description) label.append(` ${parameter.description}`);
    return [parameter, field];
  });
  let body;
  if (operation.requestBody) {
    body = make("textarea", "", make("label", "Body", one));
    const schema = operation.requestBody.content["application/json"]?.schema;
    if (schema) body.value = example(schema);
  }
  const button = make("button", "Send", one);
  const shown = make("pre", "", one);
  button.addEventListener("click", () => {
    send(base, path, method.toUpperCase(), operation, fields, body, shown).catch((error) => {
      shown.textContent = String(error);
    });
  });
};

const found = await (await fetch("openapi.json")).json();
document.getElementById("about").textContent = found.info.description;
const into = document.getElementById("routes");
into.replaceChildren();
for (const [path, methods] of Object.entries(found.paths))
  for (const [method, operation] of Object.entries(methods))
    draw(found.servers[0].url, path, method, operation, into);
