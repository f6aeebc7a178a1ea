"""The page of a run or a campaign: report.html."""
