// The sign-in form on the spot: posts where the page of its own would, then reloads, so that the
// connection to the server has the new cookie. What was unsent or half written is in the browser's
// storage; `before` saves what is not there yet.

function signInForm(texts, before) {
  const form = make("form", "sign-in");
  form.setAttribute("aria-label", texts["form.sign_in"]);
  const alert = make("p", "problem");
  alert.setAttribute("role", "alert");
  alert.hidden = true;
  const field = (label, name, type, complete) => {
    const row = make("label", "", label);
    const input = make("input");
    Object.assign(input, { name, type, required: true, autocomplete: complete });
    row.appendChild(input);
    return row;
  };
  const submit = make("button", "go", texts["form.sign_in"]);
  submit.type = "submit";
  const other = make("a", "", texts["form.other_ways"]);
  other.href = `/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`;
  other.addEventListener("click", before);
  form.append(
    make("p", "", texts.signed_out),
    alert,
    field(texts["form.name"], "name", "text", "username"),
    field(texts["form.password"], "password", "password", "current-password"),
    submit,
    other,
  );
  const fail = (key) => {
    alert.textContent = texts[key];
    alert.hidden = false;
    submit.disabled = false;
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    const body = new URLSearchParams(new FormData(form));
    try {
      // a sign-in is answered by a redirect, which is not followed here
      const answer = await fetch("/sign-in", { method: "POST", body, redirect: "manual" });
      if (answer.type === "opaqueredirect") {
        before();
        location.reload();
      } else {
        fail({ 401: "form.wrong", 429: "form.too_many" }[answer.status] || "form.failed");
      }
    } catch {
      fail("form.failed");
    }
  });
  return form;
}
