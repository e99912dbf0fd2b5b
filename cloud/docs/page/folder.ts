/** The folder of the documentation's pages, wherever a proxy has put it: `https://…/docs/`. */
export const docsFolder = new URL(location.pathname.replace(/\/docs(?:\/[^/]*)?$/, '/docs/'), location.href)
  .href
/** Address of the service. */
export const serviceUrl = docsFolder.replace(/\/docs\/$/, '')
