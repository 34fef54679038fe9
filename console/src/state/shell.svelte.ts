/** The state of the frame that several views use. */
export const shell = $state<{
  showsSidebar: boolean;
  /** The pieces of the last deletion, while it can be undone. */
  deleted: string[];
}>({ showsSidebar: false, deleted: [] });
