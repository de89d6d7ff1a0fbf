// The same declarations for CommonJS.
import branchline = require('branchline')

async function main(): Promise<void> {
  const session: branchline.Session = await branchline.Session.continueRecent({ cwd: '.' })
  const run: branchline.Run = session.prompt('Hello')
  const result: branchline.RunResult = await run.result()
  console.log(result.text, branchline.version)
}

void main()
