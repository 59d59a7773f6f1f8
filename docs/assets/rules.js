// The filter above the table of rules. Without a script the table stands as it is.
(function () {
  const table = document.querySelector(".rules table");
  if (!table) return;
  const rows = [...table.tBodies[0].rows];
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const words = (row, column) => row.cells[column].textContent.split(",").map((word) => word.trim());
  const bar = document.createElement("form");
  bar.className = "rules-filter";
  const search = bar.appendChild(document.createElement("input"));
  search.type = "search";
  search.placeholder = "Filter by code, name or words";
  search.setAttribute("aria-label", search.placeholder);
  const chosen = ["default", "language", "hazard", "fix", "on the GPU"].map((name) => {
    const column = heads.indexOf(name);
    const label = bar.appendChild(document.createElement("label"));
    label.append(name);
    const select = label.appendChild(document.createElement("select"));
    select.name = name;
    const values = new Set(rows.flatMap((row) => words(row, column)));
    for (const value of ["any", ...[...values].sort()]) select.add(new Option(value === "-" ? "none" : value, value));
    return { column, select };
  });
  const told = bar.appendChild(document.createElement("output"));
  const show = () => {
    const text = search.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      const fits = chosen.every(({ column, select }) => select.value === "any" || words(row, column).includes(select.value));
      row.hidden = !(fits && row.textContent.toLowerCase().includes(text));
      count += !row.hidden;
    }
    told.textContent = `${count} of ${rows.length} rules`;
  };
  bar.addEventListener("input", show);
  bar.addEventListener("submit", (event) => event.preventDefault());
  const box = table.closest(".rules");
  box.parentNode.insertBefore(bar, box);
  show();
})();
