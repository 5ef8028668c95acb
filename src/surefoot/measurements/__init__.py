"""What is measured of a model, one file for each subject; audits, studies and gates take it from one table."""
